// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Temporary memory that goes on in further leases.
#include <cstring>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "heapbroker/memory_manager.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

char* HostOf(const BufferRange& range) { return static_cast<char*>(range.host().value()); }

class OverflowTest : public VulkanImporterTest {
 protected:
  MemoryPlan Plan() const {
    return {.kernel_temporary = {.size = KiB(4), .memory = MemoryKind::kHostVisible},
            .kernel_temporary_overflow = OverflowPlan{.step = KiB(64)}};
  }
  std::unique_ptr<MemoryManager> Create(const MemoryPlan& plan) {
    absl::StatusOr<std::unique_ptr<MemoryManager>> manager =
        MemoryManager::Create(*a_.client, *a_.importer, plan);
    EXPECT_THAT(manager, IsOk());
    return *std::move(manager);
  }
};

TEST_F(OverflowTest, LeasesAFurtherBlockOfTheSameMemory) {
  const std::unique_ptr<MemoryManager> manager = Create(Plan());
  ArenaAllocator& arena = *manager->get_kernel_temporary_allocator();
  ASSERT_OK_AND_ASSIGN(const BufferRange planned, arena.Allocate(KiB(4), Bytes(64)));
  EXPECT_EQ(arena.overflow(), Bytes(0));
  ASSERT_OK_AND_ASSIGN(const BufferRange further, arena.Allocate(KiB(4), Bytes(64)));
  EXPECT_NE(further.buffer().memory(), planned.buffer().memory());
  EXPECT_EQ(arena.overflow(), KiB(64));
  EXPECT_EQ(arena.size(), KiB(4));
  EXPECT_EQ(arena.used(), KiB(8));
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  const v1::AllocateRequest request = daemon_.last_allocate();
  ASSERT_EQ(request.blocks_size(), 1);
  EXPECT_EQ(request.blocks(0).kind(), v1::MEMORY_KIND_HOST_VISIBLE);
  EXPECT_TRUE(request.blocks(0).transient());
  std::memset(HostOf(planned), 1, KiB(4).count());
  std::memset(HostOf(further), 2, KiB(4).count());
  EXPECT_EQ(HostOf(planned)[4095], 1);
}

TEST_F(OverflowTest, TheFurtherBlockGoesBackAfterARunThatDidWithoutIt) {
  const std::unique_ptr<MemoryManager> manager = Create(Plan());
  ArenaAllocator& arena = *manager->get_kernel_temporary_allocator();
  for (int run = 0; run < 2; ++run) {
    ASSERT_THAT(arena.Allocate(KiB(5), Bytes(1)), IsOk());
    arena.Reset();
    EXPECT_EQ(daemon_.leased_blocks(), 2u);
  }
  ASSERT_THAT(arena.Allocate(KiB(3), Bytes(1)), IsOk());
  arena.Reset();
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_EQ(a_.importer->stats().imports, 1u);
  EXPECT_EQ(arena.overflow(), Bytes(0));
  EXPECT_EQ(arena.peak(), KiB(5));
}

TEST_F(OverflowTest, TheManagersEndGivesEverythingBack) {
  {
    const std::unique_ptr<MemoryManager> manager = Create(Plan());
    ASSERT_THAT(manager->get_kernel_temporary_allocator()->Allocate(KiB(5), Bytes(1)), IsOk());
    EXPECT_EQ(daemon_.leased_blocks(), 2u);
  }
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
  EXPECT_EQ(a_.importer->stats().imports, 0u);
}

TEST_F(OverflowTest, ARefusedLeaseIsTheAnswerAndTheArenaGoesOn) {
  const std::unique_ptr<MemoryManager> manager = Create(Plan());
  ArenaAllocator& arena = *manager->get_kernel_temporary_allocator();
  ASSERT_THAT(arena.Allocate(KiB(3), Bytes(1)), IsOk());
  daemon_.RefuseAllocationsWith(absl::ResourceExhaustedError("others hold it"));
  EXPECT_THAT(arena.Allocate(KiB(2), Bytes(1)),
              StatusIs(StatusCode::kResourceExhausted, "others hold it"));
  // The second attempt was for no more than is needed.
  EXPECT_EQ(daemon_.last_allocate().blocks(0).size(), KiB(2).count());
  EXPECT_EQ(arena.used(), KiB(3));
  EXPECT_THAT(arena.Allocate(KiB(1), Bytes(1)), IsOk());
}

TEST_F(OverflowTest, NothingIsLeasedUnlessThePlanSaysSo) {
  MemoryPlan plan = Plan();
  plan.kernel_temporary_overflow.reset();
  const std::unique_ptr<MemoryManager> manager = Create(plan);
  EXPECT_THAT(manager->get_kernel_temporary_allocator()->Allocate(KiB(5), Bytes(1)),
              StatusIs(StatusCode::kResourceExhausted, "0 of 4096"));
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
}

TEST_F(OverflowTest, WithoutADaemonPlannedMemoryIsAllThereIs) {
  const std::unique_ptr<MemoryManager> manager = Create(Plan());
  ArenaAllocator& arena = *manager->get_kernel_temporary_allocator();
  daemon_.Stop();
  EXPECT_THAT(arena.Allocate(KiB(5), Bytes(1)), StatusIs(StatusCode::kUnavailable, ""));
  EXPECT_THAT(arena.Allocate(KiB(4), Bytes(1)), IsOk());
  arena.Reset();
  EXPECT_EQ(arena.used(), Bytes(0));
}

}  // namespace
}  // namespace heapbroker

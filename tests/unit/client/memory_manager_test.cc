// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_manager.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "heapbroker/checksum.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

constexpr absl::StatusCode kPrecondition = absl::StatusCode::kFailedPrecondition;

std::string Pattern(size_t size) {
  std::string data(size, '\0');
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(i * 7 + i / 251);
  return data;
}

class MemoryManagerTest : public VulkanFixture {
 protected:
  MemoryPlan Plan() const {
    return {.constant_name = "weights",
            .constant_size = Bytes(weights_.size()),
            .non_constant_sizes = {KiB(4), Bytes(1000)},
            .runtime_size = KiB(2),
            .kernel_temporary_size = KiB(1)};
  }
  std::unique_ptr<MemoryManager> Create(VulkanClient& client) {
    absl::StatusOr<std::unique_ptr<MemoryManager>> manager =
        MemoryManager::Create(*client.client, *client.importer, Plan());
    EXPECT_THAT(manager, IsOk());
    return *std::move(manager);
  }
  // Filled and sealed.
  std::unique_ptr<MemoryManager> CreateFilled(VulkanClient& client) {
    std::unique_ptr<MemoryManager> manager = Create(client);
    ConstantAllocator& constant = *manager->get_constant_allocator();
    EXPECT_TRUE(constant.must_fill());
    EXPECT_THAT(constant.Write(Bytes(0), weights_.data(), Bytes(weights_.size())), IsOk());
    EXPECT_THAT(constant.Seal(), IsOk());
    return manager;
  }

  // Odd, so that the fake's two blocks differ in size.
  const std::string weights_ = Pattern(10'001);
  VulkanClient a_{daemon_};
};

TEST_F(MemoryManagerTest, OneProcessFillsTheWeightsAndTheNextOneFindsThem) {
  const std::unique_ptr<MemoryManager> first = CreateFilled(a_);
  EXPECT_FALSE(first->get_constant_allocator()->must_fill());
  VulkanClient b(daemon_);
  const std::unique_ptr<MemoryManager> second = Create(b);
  ConstantAllocator& constant = *second->get_constant_allocator();
  EXPECT_FALSE(constant.must_fill());
  EXPECT_EQ(constant.size(), Bytes(10'001));
  EXPECT_EQ(constant.checksum(), ChecksumOf(weights_.data(), Bytes(weights_.size())));
  ASSERT_OK_AND_ASSIGN(const BufferRange range, constant.Get(Bytes(5'100), Bytes(4'901)));
  ASSERT_NE(range.host, nullptr);
  EXPECT_EQ(std::memcmp(range.host, weights_.data() + 5'100, 4'901), 0);
  EXPECT_EQ(range.offset, Bytes(100));
  EXPECT_THAT(constant.Verify(), IsOk());
}

TEST_F(MemoryManagerTest, VerifyFindsAWriteAfterSealing) {
  const std::unique_ptr<MemoryManager> manager = CreateFilled(a_);
  ConstantAllocator& constant = *manager->get_constant_allocator();
  ASSERT_OK_AND_ASSIGN(const BufferRange range, constant.Get(Bytes(10'000), Bytes(1)));
  static_cast<char*>(range.host)[0] ^= 1;
  EXPECT_THAT(constant.Verify(), StatusIs(absl::StatusCode::kDataLoss, "weights"));
}

TEST_F(MemoryManagerTest, OnlyAnUnsealedSegmentCanBeWrittenAndSealed) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  ConstantAllocator& constant = *manager->get_constant_allocator();
  EXPECT_THAT(constant.Verify(), StatusIs(kPrecondition, "nothing is sealed"));
  EXPECT_THAT(constant.Write(Bytes(10'000), "ab", Bytes(2)),
              StatusIs(absl::StatusCode::kOutOfRange, ""));
  ASSERT_THAT(constant.Seal(), IsOk());
  EXPECT_THAT(constant.Seal(), StatusIs(kPrecondition, "sealed"));
  EXPECT_THAT(constant.Write(Bytes(0), "a", Bytes(1)), StatusIs(kPrecondition, "sealed"));
}

TEST_F(MemoryManagerTest, ConstantRangesKeepToTheBlocks) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  const ConstantAllocator& constant = *manager->get_constant_allocator();
  EXPECT_EQ(constant.block_starts(), (std::vector<Bytes>{Bytes(0), Bytes(5'000)}));
  EXPECT_THAT(constant.Get(Bytes(4'999), Bytes(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, "start of a block at 5000"));
  EXPECT_THAT(constant.Get(Bytes(10'001), Bytes(0)), IsOk());
  EXPECT_THAT(constant.Get(Bytes(10'001), Bytes(1)),
              StatusIs(absl::StatusCode::kOutOfRange, "10001"));
  EXPECT_THAT(constant.Get(Bytes(2), Bytes::Max()),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
}

TEST_F(MemoryManagerTest, PlannedRangesAreChecked) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  const HierarchicalAllocator& planned = *manager->get_non_constant_allocator();
  ASSERT_EQ(planned.memory_count(), 2u);
  ASSERT_OK_AND_ASSIGN(const BufferRange range, planned.Get(1, Bytes(10), Bytes(990)));
  EXPECT_EQ(range.buffer->size(), Bytes(1000));
  EXPECT_EQ(range.host, static_cast<char*>(range.buffer->mapped()) + 10);
  EXPECT_THAT(planned.Get(1, Bytes(1000), Bytes(0)), IsOk());
  EXPECT_THAT(planned.Get(1, Bytes(11), Bytes(990)),
              StatusIs(absl::StatusCode::kOutOfRange, "memory id 1"));
  EXPECT_THAT(planned.Get(1, Bytes::Max(), Bytes(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
  EXPECT_THAT(planned.Get(2, Bytes(0), Bytes(0)),
              StatusIs(absl::StatusCode::kInvalidArgument, "no memory id 2"));
}

TEST_F(MemoryManagerTest, TheArenasAreBlocksOfTheirOwn) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  ArenaAllocator& runtime = *manager->get_runtime_allocator();
  ArenaAllocator& temporary = *manager->get_kernel_temporary_allocator();
  EXPECT_EQ(runtime.size(), KiB(2));
  EXPECT_EQ(temporary.size(), KiB(1));
  ASSERT_OK_AND_ASSIGN(const BufferRange first, runtime.Allocate(Bytes(100), Bytes(64)));
  ASSERT_OK_AND_ASSIGN(const BufferRange second, runtime.Allocate(Bytes(100), Bytes(64)));
  ASSERT_OK_AND_ASSIGN(const BufferRange other, temporary.Allocate(Bytes(100), Bytes(64)));
  EXPECT_EQ(second.offset, Bytes(128));
  EXPECT_EQ(first.buffer, second.buffer);
  EXPECT_NE(first.buffer->memory(), other.buffer->memory());
  std::memset(first.host, 1, 100);
  std::memset(second.host, 2, 100);
  std::memset(other.host, 3, 100);
  EXPECT_EQ(static_cast<char*>(first.host)[99], 1);
  EXPECT_THAT(runtime.Allocate(KiB(2), Bytes(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "228 of 2048"));
  EXPECT_EQ(runtime.used(), Bytes(228));
  runtime.Reset();
  EXPECT_EQ(runtime.used(), Bytes(0));
  EXPECT_EQ(runtime.peak(), Bytes(228));
}

TEST_F(MemoryManagerTest, EverythingButTheSegmentIsLeasedInOneCallAndComesBack) {
  {
    const std::unique_ptr<MemoryManager> manager = Create(a_);
    EXPECT_EQ(daemon_.last_allocate().blocks_size(), 4);
    EXPECT_EQ(daemon_.leased_blocks(), 4u + 2u);
    EXPECT_EQ(a_.importer->stats().imports, 6u);
    EXPECT_EQ(daemon_.segment_users("weights"), 1);
  }
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  EXPECT_EQ(daemon_.releases().size(), 1u);
  EXPECT_EQ(daemon_.segment_users("weights"), 0);
  EXPECT_EQ(a_.importer->stats().imports, 0u);
}

TEST_F(MemoryManagerTest, ARefusedPlanHoldsNothing) {
  MemoryPlan plan = Plan();
  plan.constant_size = Bytes(0);
  EXPECT_THAT(MemoryManager::Create(*a_.client, *a_.importer, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, "constant_size"));
  plan = Plan();
  plan.non_constant_sizes = {Bytes(1), Bytes(0)};
  EXPECT_THAT(MemoryManager::Create(*a_.client, *a_.importer, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, "non_constant_sizes[1]"));
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(MemoryManagerTest, AnEmptyPlanMakesEmptyAllocators) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager,
                       MemoryManager::Create(*a_.client, *a_.importer, {}));
  EXPECT_EQ(manager->get_constant_allocator()->size(), Bytes(0));
  EXPECT_THAT(manager->get_constant_allocator()->Get(Bytes(0), Bytes(0)), IsOk());
  EXPECT_THAT(manager->get_constant_allocator()->Seal(),
              StatusIs(kPrecondition, "no constant segment"));
  EXPECT_EQ(manager->get_non_constant_allocator()->memory_count(), 0u);
  EXPECT_THAT(manager->get_runtime_allocator()->Allocate(Bytes(0), Bytes(1)), IsOk());
  EXPECT_THAT(manager->get_runtime_allocator()->Allocate(Bytes(1), Bytes(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "0 of 0"));
}

TEST_F(MemoryManagerTest, SurvivesTheDaemonsEnd) {
  const std::unique_ptr<MemoryManager> manager = CreateFilled(a_);
  daemon_.Stop();
  EXPECT_THAT(manager->get_constant_allocator()->Verify(), IsOk());
  EXPECT_THAT(manager->get_runtime_allocator()->Allocate(Bytes(8), Bytes(8)), IsOk());
}

}  // namespace
}  // namespace heapbroker

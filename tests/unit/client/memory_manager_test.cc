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

char* HostOf(const BufferRange& range) {
  const absl::StatusOr<void*> host = range.host();
  EXPECT_THAT(host, IsOk());
  return static_cast<char*>(host.value_or(nullptr));
}

class MemoryManagerTest : public VulkanFixture {
 protected:
  MemoryPlan Plan() const {
    return {.constant = {.name = "weights", .size = Bytes(weights_.size())},
            .non_constant = {{.size = KiB(4)}, {.size = Bytes(1000), .name = "scores"}},
            .runtime = {.size = KiB(2)},
            .kernel_temporary = {.size = KiB(1)}};
  }
  std::unique_ptr<MemoryManager> Create(VulkanClient& client) { return Create(client, Plan()); }
  std::unique_ptr<MemoryManager> Create(VulkanClient& client, const MemoryPlan& plan) {
    absl::StatusOr<std::unique_ptr<MemoryManager>> manager =
        MemoryManager::Create(*client.client, *client.importer, plan);
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
  ASSERT_OK_AND_ASSIGN(const BufferRange range,
                       constant.get_offset_address(Bytes(5'100), Bytes(4'901)));
  EXPECT_EQ(std::memcmp(HostOf(range), weights_.data() + 5'100, 4'901), 0);
  EXPECT_EQ(range.offset(), Bytes(100));
  EXPECT_THAT(constant.Verify(), IsOk());
}

TEST_F(MemoryManagerTest, VerifyFindsAWriteAfterSealing) {
  const std::unique_ptr<MemoryManager> manager = CreateFilled(a_);
  ConstantAllocator& constant = *manager->get_constant_allocator();
  ASSERT_OK_AND_ASSIGN(const BufferRange range,
                       constant.get_offset_address(Bytes(10'000), Bytes(1)));
  *HostOf(range) ^= 1;
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

TEST_F(MemoryManagerTest, FillingAndVerifyingEndWithTheirTimeAndByCancellation) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  ConstantAllocator& constant = *manager->get_constant_allocator();
  const auto cancelled = std::make_shared<Cancellation>();
  cancelled->Cancel();
  for (const auto& [call, code] :
       {std::pair(CallOptions{.timeout = absl::ZeroDuration()},
                  absl::StatusCode::kDeadlineExceeded),
        std::pair(CallOptions{.cancellation = cancelled}, absl::StatusCode::kCancelled)}) {
    EXPECT_THAT(constant.Write(Bytes(0), "a", Bytes(1), call), StatusIs(code, "0 of 1 bytes"));
    EXPECT_THAT(constant.Seal(call), StatusIs(code, ""));
    EXPECT_TRUE(constant.must_fill());
  }
  // Also where the daemon does not answer.
  daemon_.HoldCalls(true);
  EXPECT_THAT(constant.Seal({.timeout = absl::Milliseconds(200)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  daemon_.HoldCalls(false);
  ASSERT_THAT(constant.Seal(), IsOk());
  EXPECT_THAT(constant.Verify({.timeout = absl::ZeroDuration()}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(constant.Verify({.cancellation = cancelled}),
              StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(constant.Verify(), IsOk());
}

TEST_F(MemoryManagerTest, ConstantRangesKeepToTheBlocks) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  const ConstantAllocator& constant = *manager->get_constant_allocator();
  EXPECT_EQ(constant.block_starts(), (std::vector<Bytes>{Bytes(0), Bytes(5'000)}));
  EXPECT_THAT(constant.get_offset_address(Bytes(4'999), Bytes(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, "start of a block at 5000"));
  EXPECT_THAT(constant.get_offset_address(Bytes(10'001), Bytes(0)), IsOk());
  EXPECT_THAT(constant.get_offset_address(Bytes(10'001), Bytes(1)),
              StatusIs(absl::StatusCode::kOutOfRange, "10001"));
  EXPECT_THAT(constant.get_offset_address(Bytes(2), Bytes::Max()),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
}

TEST_F(MemoryManagerTest, PlannedRangesAreChecked) {
  const std::unique_ptr<MemoryManager> manager = Create(a_);
  const HierarchicalAllocator& planned = *manager->get_non_constant_allocator();
  ASSERT_EQ(planned.memory_count(), 2u);
  ASSERT_OK_AND_ASSIGN(const BufferRange range,
                       planned.get_offset_address(1, Bytes(10), Bytes(990)));
  EXPECT_EQ(range.size(), Bytes(990));
  EXPECT_EQ(HostOf(range), static_cast<char*>(range.buffer().mapped()) + range.offset().count());
  ASSERT_OK_AND_ASSIGN(const BufferRange all, planned.get_offset_address(1, Bytes(0), Bytes(1000)));
  EXPECT_EQ(HostOf(range), HostOf(all) + 10);
  EXPECT_THAT(planned.get_offset_address(1, Bytes(1000), Bytes(0)), IsOk());
  EXPECT_THAT(planned.get_offset_address(1, Bytes(11), Bytes(990)),
              StatusIs(absl::StatusCode::kOutOfRange, "memory id 1"));
  EXPECT_THAT(planned.get_offset_address(1, Bytes::Max(), Bytes(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
  EXPECT_THAT(planned.get_offset_address(2, Bytes(0), Bytes(0)),
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
  EXPECT_EQ(HostOf(second), HostOf(first) + 128);
  EXPECT_NE(first.buffer().memory(), other.buffer().memory());
  std::memset(HostOf(first), 1, 100);
  std::memset(HostOf(second), 2, 100);
  std::memset(HostOf(other), 3, 100);
  EXPECT_EQ(HostOf(first)[99], 1);
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

TEST_F(MemoryManagerTest, RefusesAPlanThatContradictsItself) {
  MemoryPlan plan = Plan();
  plan.constant.size = Bytes(0);
  EXPECT_THAT(MemoryManager::Create(*a_.client, *a_.importer, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, "constant.size"));
  plan = Plan();
  plan.non_constant = {{.size = Bytes(1)}, {}};
  EXPECT_THAT(MemoryManager::Create(*a_.client, *a_.importer, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, "non_constant[1].size"));
  plan.non_constant = {{.size = Bytes(1), .name = "a"}, {.size = Bytes(1), .name = "a"}};
  EXPECT_THAT(MemoryManager::Create(*a_.client, *a_.importer, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, "non_constant[1].name"));
  plan = Plan();
  plan.options.request_id = 1;
  EXPECT_THAT(MemoryManager::Create(*a_.client, *a_.importer, plan),
              StatusIs(absl::StatusCode::kInvalidArgument, "request_id"));
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(MemoryManagerTest, AnEmptyPlanMakesEmptyAllocators) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager,
                       MemoryManager::Create(*a_.client, *a_.importer, {}));
  EXPECT_EQ(manager->get_constant_allocator()->size(), Bytes(0));
  EXPECT_THAT(manager->get_constant_allocator()->get_offset_address(Bytes(0), Bytes(0)), IsOk());
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

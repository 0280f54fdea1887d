// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What becomes of a plan: the requests that it makes, and what is kept if one of
// them fails.
#include "heapbroker/memory_plan.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "heapbroker/memory_manager.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class MemoryPlanTest : public VulkanImporterTest {
 protected:
  absl::StatusOr<std::unique_ptr<MemoryManager>> Create(const MemoryPlan& plan) {
    return MemoryManager::Create(*a_.client, *a_.importer, plan);
  }

  // Only what a closed segment keeps.
  void ExpectNothingKept() {
    EXPECT_TRUE(WaitFor([&] {
      return daemon_.segment_users("weights") == 0 && daemon_.leased_blocks() == 2;
    })) << daemon_.leased_blocks();
    EXPECT_EQ(a_.importer->stats().imports, 0u);
  }

  const MemoryPlan everything_ = {.constant = {.name = "weights", .size = KiB(16)},
                                  .non_constant = {{.size = KiB(4)}, {.size = KiB(8)}},
                                  .runtime = {.size = KiB(2)},
                                  .kernel_temporary = {.size = KiB(1)}};
};

TEST_F(MemoryPlanTest, EveryArenaIsAskedForInItsOwnTerms) {
  const MemoryPlan plan = {
      .non_constant = {{.size = Bytes(100)},
                       {.size = Bytes(200), .memory = MemoryKind::kHostCached, .zeroed = true},
                       {.size = Bytes(300), .memory = HeapKey{"device_local"}}},
      .runtime = {.size = Bytes(400)},
      .kernel_temporary = {.size = Bytes(500), .memory = MemoryTypeIndex{0}},
      .options = {.priority = Priority::kHigh}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager, Create(plan));
  const v1::AllocateRequest request = daemon_.last_allocate();
  EXPECT_EQ(request.priority(), v1::PRIORITY_HIGH);
  ASSERT_EQ(request.blocks_size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(request.blocks(i).size(), 100u * static_cast<uint64_t>(i + 1));
    EXPECT_EQ(request.blocks(i).alignment(), kMaxBlockAlignment.count());
    EXPECT_EQ(request.blocks(i).zeroed(), i == 1);
  }
  EXPECT_EQ(request.blocks(0).kind(), v1::MEMORY_KIND_DEVICE_LOCAL);
  EXPECT_EQ(request.blocks(1).kind(), v1::MEMORY_KIND_HOST_CACHED);
  EXPECT_EQ(request.blocks(2).heap_key(), "device_local");
  EXPECT_EQ(request.blocks(3).kind(), v1::MEMORY_KIND_HOST_VISIBLE);
  EXPECT_TRUE(request.blocks(4).has_memory_type_index());
}

TEST_F(MemoryPlanTest, PlannedMemoryIsFoundByItsName) {
  MemoryPlan plan = everything_;
  plan.non_constant[1].name = "kv cache";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager, Create(plan));
  const HierarchicalAllocator& planned = *manager->get_non_constant_allocator();
  EXPECT_EQ(planned.memory_id("kv cache").value(), 1u);
  EXPECT_EQ(planned.memory_size(1).value(), KiB(8));
  EXPECT_THAT(planned.memory_id("other"), StatusIs(StatusCode::kNotFound, "other"));
  EXPECT_THAT(planned.memory_id(""), StatusIs(StatusCode::kNotFound, ""));
  EXPECT_THAT(planned.memory_size(2), StatusIs(StatusCode::kInvalidArgument, "memory id 2"));
  EXPECT_THAT(planned.get_offset_address(1, KiB(8), Bytes(1)),
              StatusIs(StatusCode::kOutOfRange, "kv cache"));
}

TEST_F(MemoryPlanTest, KeepsNothingWhereTheLeasesAreRefused) {
  daemon_.RefuseAllocationsWith(absl::ResourceExhaustedError("others hold it"));
  EXPECT_THAT(Create(everything_), StatusIs(StatusCode::kResourceExhausted, "others hold it"));
  ExpectNothingKept();
}

TEST_F(MemoryPlanTest, KeepsNothingWhereAnImportFails) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd no_memory(ends[0]);
  const UniqueFd other_end(ends[1]);
  // The segment's two blocks are fetched first, and are what they should be; of the
  // others the first ones are.
  std::atomic<int> fetches = 0;
  daemon_.session_socket().AnswerWith([&](const v1::SessionRequest& request) {
    if (++fetches <= 2) return daemon_.Answer(request);
    SessionAnswer answer;
    answer.reply.mutable_fetched()->add_block_ids(request.fetch().block_ids(0));
    answer.fds.push_back(DuplicateFd(no_memory.get()).value());
    return answer;
  });
  EXPECT_THAT(Create(everything_), StatusIs(StatusCode::kFailedPrecondition, "is a pipe"));
  EXPECT_EQ(fetches, 3);
  ExpectNothingKept();
}

TEST_F(MemoryPlanTest, ItsTimeIsOneForTheLeaseAndAllImports) {
  // Whose calls would otherwise wait for ever.
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> patient,
                       Client::Connect({.runtime_dir = daemon_.runtime_dir(),
                                        .call_timeout = absl::InfiniteDuration()}));
  daemon_.session_socket().AnswerWith([](const v1::SessionRequest&) {
    SessionAnswer answer;
    answer.then = SessionAnswer::Then::kIgnore;
    return answer;
  });
  MemoryPlan with_segment = everything_;
  with_segment.options.timeout = absl::Milliseconds(500);
  MemoryPlan without = with_segment;
  without.constant = {};
  for (const MemoryPlan& plan : {with_segment, without}) {
    EXPECT_THAT(MemoryManager::Create(*patient, *a_.importer, plan),
                StatusIs(StatusCode::kDeadlineExceeded, ""));
    ExpectNothingKept();
  }
}

// Where an import fails, nobody answers any more.
class FailingPlanTest : public MemoryPlanTest {
 protected:
  // At the fetch with this number.
  void HangAtFetch(int last, std::function<void()> then) {
    daemon_.session_socket().AnswerWith(
        [this, last, then = std::move(then)](const v1::SessionRequest& request) {
          if (request.has_hello() || ++fetches_ < last) return daemon_.Answer(request);
          daemon_.HoldCalls(true);
          SessionAnswer answer;
          answer.then = SessionAnswer::Then::kIgnore;
          then();
          return answer;
        });
  }
  void ExpectAllGoesLater() {
    EXPECT_GT(daemon_.leased_blocks(), 2u) << "it waited for no answer";
    daemon_.HoldCalls(false);
    ExpectNothingKept();
  }

  std::atomic<int> fetches_ = 0;
  // The calls that give back would wait for ever.
  const std::shared_ptr<Client> patient_ =
      Client::Connect(
          {.runtime_dir = daemon_.runtime_dir(), .call_timeout = absl::InfiniteDuration()})
          .value();
};

TEST_F(FailingPlanTest, ItsTimeIsForGivingBackAsWell) {
  HangAtFetch(3, [] {});
  MemoryPlan plan = everything_;
  plan.options.timeout = absl::Milliseconds(200);
  EXPECT_THAT(MemoryManager::Create(*patient_, *a_.importer, plan),
              StatusIs(StatusCode::kDeadlineExceeded, ""));
  ExpectAllGoesLater();
}

TEST_F(FailingPlanTest, OneThatIsCancelledMidwayGivesBackWithoutWaiting) {
  MemoryPlan plan = everything_;
  plan.options.timeout = absl::InfiniteDuration();
  plan.options.cancellation = std::make_shared<Cancellation>();
  std::thread canceller;
  HangAtFetch(3, [&] {
    // A thread of its own: what ends the call waits for nobody.
    canceller = std::thread([&] { plan.options.cancellation->Cancel(); });
  });
  EXPECT_THAT(MemoryManager::Create(*patient_, *a_.importer, plan),
              StatusIs(StatusCode::kCancelled, ""));
  canceller.join();
  ExpectAllGoesLater();
}

TEST_F(FailingPlanTest, ASegmentThatCannotBeImportedIsClosedWithoutWaiting) {
  HangAtFetch(1, [] {});
  MemoryPlan plan = everything_;
  plan.options.timeout = absl::Milliseconds(200);
  EXPECT_THAT(MemoryManager::Create(*patient_, *a_.importer, plan),
              StatusIs(StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(daemon_.segment_users("weights"), 1);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(WaitFor([&] { return daemon_.segment_users("weights") == 0; }));
}

TEST_F(MemoryPlanTest, LeasesNothingWhereTheSegmentDoesNotCome) {
  // Somebody else fills it, for as long as the test lasts.
  const VulkanClient writer(daemon_);
  ASSERT_OK_AND_ASSIGN(const Segment segment,
                       writer.client->OpenSegment({.name = "weights", .size = KiB(16)}));
  MemoryPlan plan = everything_;
  plan.constant.timeout = absl::Milliseconds(50);
  EXPECT_THAT(Create(plan), StatusIs(StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  EXPECT_EQ(daemon_.last_allocate().blocks_size(), 0);
}

TEST_F(MemoryPlanTest, ACancelledPlanKeepsNothing) {
  MemoryPlan plan = everything_;
  plan.options.cancellation = std::make_shared<Cancellation>();
  plan.options.cancellation->Cancel();
  EXPECT_THAT(Create(plan), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(MemoryPlanTest, RangesHaveDeviceAddressesWhereTheyWerePlanned) {
  if (!a_.device->context().device_addresses) GTEST_SKIP() << "this device has no addresses";
  source_->MakeFromNowOn({.device_address = true});
  MemoryPlan plan{.non_constant = {{.size = KiB(4), .device_address = true}},
                  .kernel_temporary = {.size = KiB(8), .device_address = true}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager, Create(plan));
  EXPECT_TRUE(daemon_.last_allocate().blocks(1).device_address());
  const HierarchicalAllocator& planned = *manager->get_non_constant_allocator();
  ASSERT_OK_AND_ASSIGN(const BufferRange first, planned.get_offset_address(0, Bytes(0), Bytes(1)));
  ASSERT_OK_AND_ASSIGN(const BufferRange other, planned.get_offset_address(0, Bytes(99), Bytes(1)));
  ASSERT_TRUE(first.device_address().has_value());
  EXPECT_NE(*first.device_address(), 0u);
  EXPECT_EQ(other.device_address(), *first.device_address() + 99);

  source_->MakeFromNowOn({});
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> plain,
                       Create({.non_constant = {{.size = KiB(4)}}}));
  ASSERT_OK_AND_ASSIGN(
      const BufferRange without,
      plain->get_non_constant_allocator()->get_offset_address(0, Bytes(0), Bytes(1)));
  EXPECT_FALSE(without.device_address().has_value());
}

TEST_F(MemoryPlanTest, AnArenaAlignsTheHostsAddress) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager,
                       Create({.kernel_temporary = {.size = KiB(256)}}));
  ArenaAllocator& arena = *manager->get_kernel_temporary_allocator();
  ASSERT_THAT(arena.Allocate(Bytes(1), Bytes(1)), IsOk());
  for (const uint64_t alignment : {64u, 4096u, 65536u}) {
    ASSERT_OK_AND_ASSIGN(const BufferRange range, arena.Allocate(Bytes(1), Bytes(alignment)));
    ASSERT_OK_AND_ASSIGN(void* const host, range.host());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host) % alignment, 0u);
  }
}

}  // namespace
}  // namespace heapbroker

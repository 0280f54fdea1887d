// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/device_allocator.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

uint8_t* HostOf(const DeviceAllocation& allocation) {
  return static_cast<uint8_t*>(allocation.range.host().value());
}

class DeviceAllocatorTest : public VulkanImporterTest {
 protected:
  std::unique_ptr<DeviceAllocator> Create(const DeviceAllocatorOptions& options) {
    auto allocator = DeviceAllocator::Create(cache_, options);
    EXPECT_THAT(allocator, IsOk());
    return *std::move(allocator);
  }
  static DeviceAllocatorOptions Small() {
    return {.memory = MemoryKind::kHostVisible, .smallest_block = KiB(64), .largest_block = MiB(1)};
  }
  // From now on requests for more than `most` bytes are refused; notes what is asked for.
  void RefuseAbove(Bytes most) {
    daemon_.JudgeAllocationsBy([this, most](const v1::AllocateRequest& request) -> absl::Status {
      MutexLock lock(mutex_);
      asked_.push_back(Bytes(request.blocks(0).size()));
      waits_.push_back(!request.has_max_wait() || request.max_wait().seconds() > 0 ||
                       request.max_wait().nanos() > 0);
      if (asked_.back() <= most) return absl::OkStatus();
      return NoMemoryError("others hold it");
    });
  }
  std::vector<Bytes> asked() {
    MutexLock lock(mutex_);
    return std::exchange(asked_, {});
  }

  std::shared_ptr<LocalCache> cache_ =
      LocalCache::Start(*a_.client, *a_.importer,
                        {.max_bytes = GiB(1), .max_idle = absl::InfiniteDuration()})
          .value();
  Mutex mutex_;
  std::vector<Bytes> asked_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> waits_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(DeviceAllocatorTest, CutsOneBlockAsLongAsThereIsRoom) {
  const auto allocator = Create(Small());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation first, allocator->Allocate(Bytes(1000)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation second, allocator->Allocate(Bytes(1000)));
  EXPECT_EQ(first.range.buffer().memory(), second.range.buffer().memory());
  EXPECT_EQ(second.range.offset() - first.range.offset(), KiB(1));
  std::memset(HostOf(first), 1, 1000);
  std::memset(HostOf(second), 2, 1000);
  EXPECT_EQ(HostOf(first)[999], 1);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_EQ(daemon_.last_allocate().blocks(0).alignment(), kMaxBlockAlignment.count());
  const DeviceAllocatorStats stats = allocator->stats();
  EXPECT_EQ(stats.leased, KiB(64));
  EXPECT_EQ(stats.allocated, KiB(2));
  EXPECT_EQ(stats.free, KiB(62));
  EXPECT_EQ(stats.largest_free, KiB(62));
  EXPECT_EQ(stats.allocations, 2u);
  EXPECT_EQ(stats.blocks, 1u);
}

TEST_F(DeviceAllocatorTest, GrowsInStepsAndGivesLargeRequestsABlockOfTheirSize) {
  const auto allocator = Create(Small());
  RefuseAbove(GiB(1));
  ASSERT_THAT(allocator->Allocate(KiB(40)), IsOk());
  ASSERT_THAT(allocator->Allocate(KiB(40)), IsOk());
  ASSERT_THAT(allocator->Allocate(KiB(100)), IsOk());
  ASSERT_THAT(allocator->Allocate(Bytes(5'000'001)), IsOk());
  EXPECT_THAT(asked(), ElementsAre(KiB(64), KiB(64), KiB(128), Bytes(5'000'192)));
  EXPECT_EQ(allocator->stats().blocks, 4u);
  EXPECT_EQ(allocator->stats().leased, KiB(256) + Bytes(5'000'192));
}

TEST_F(DeviceAllocatorTest, FallsBackToTheExactSizeBeforeItFails) {
  const auto allocator = Create(Small());
  ASSERT_THAT(allocator->Allocate(Bytes(4'000'000)), IsOk());
  RefuseAbove(KiB(100));
  ASSERT_THAT(allocator->Allocate(KiB(100)), IsOk());
  EXPECT_THAT(asked(), ElementsAre(MiB(1), KiB(512), KiB(256), KiB(128), KiB(100)));
  RefuseAbove(KiB(99));
  EXPECT_THAT(allocator->Allocate(KiB(100)), StatusIs(StatusCode::kResourceExhausted, "others"));
  EXPECT_THAT(asked(), ElementsAre(MiB(1), KiB(512), KiB(256), KiB(128), KiB(100), KiB(100)));
  MutexLock lock(mutex_);
  EXPECT_TRUE(waits_.back());
  waits_.pop_back();
  EXPECT_THAT(waits_, ::testing::Each(false)) << "only for what is needed";
}

TEST_F(DeviceAllocatorTest, AsksForNoStepThatTheLastRefusalHasNoRoomFor) {
  const auto allocator = Create(Small());
  ASSERT_THAT(allocator->Allocate(Bytes(4'000'000)), IsOk());
  v1::MemoryRefusal refusal;
  const auto refuse = [&](v1::MemoryRefusal::Limit limit, Bytes largest_now) {
    refusal.set_limit(limit);
    refusal.set_largest_now(largest_now.count());
    daemon_.JudgeAllocationsBy([this, refusal](const v1::AllocateRequest& request) -> absl::Status {
      MutexLock lock(mutex_);
      asked_.push_back(Bytes(request.blocks(0).size()));
      if (asked_.back().count() <= refusal.largest_now()) return absl::OkStatus();
      return NoMemoryError("others hold it", refusal);
    });
  };
  refuse(v1::MemoryRefusal::LIMIT_HEAP_BUDGET, KiB(200));
  ASSERT_THAT(allocator->Allocate(KiB(100)), IsOk());
  EXPECT_THAT(asked(), ElementsAre(MiB(1), KiB(128)));
  // What is needed is asked for in any case: it is what the answer is about.
  refuse(v1::MemoryRefusal::LIMIT_DRIVER, KiB(99));
  EXPECT_FALSE(allocator->Allocate(KiB(100)).ok());
  EXPECT_THAT(asked(), ElementsAre(MiB(1), KiB(100), KiB(100)));
  // Of a limit that counts something else, the figure says nothing about sizes.
  refuse(v1::MemoryRefusal::LIMIT_DESCRIPTORS, Bytes(0));
  EXPECT_FALSE(allocator->Allocate(KiB(400)).ok());
  EXPECT_THAT(asked(), ElementsAre(MiB(1), KiB(512), KiB(400), KiB(400)));
}

TEST_F(DeviceAllocatorTest, EmptiesTheCacheBeforeItFails) {
  const auto allocator = Create(Small());
  const auto other = Create(
      {.memory = MemoryKind::kHostCached, .smallest_block = KiB(64), .largest_block = KiB(64)});
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation idle, other->Allocate(Bytes(1)));
  ASSERT_THAT(other->Free(idle.handle), IsOk());
  EXPECT_EQ(cache_->stats().idle_blocks, 1u);
  // As a daemon whose budget the idle block takes up.
  daemon_.JudgeAllocationsBy([this](const v1::AllocateRequest&) -> absl::Status {
    if (cache_->stats().idle_blocks == 0) return absl::OkStatus();
    return NoMemoryError("idle blocks are in the way");
  });
  EXPECT_THAT(allocator->Allocate(KiB(10)), IsOk());
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_EQ(allocator->stats().leased, KiB(10));
}

TEST_F(DeviceAllocatorTest, WhatThisProcessLacksItDoesNotAskForAgainInSmallerBlocks) {
  VulkanContext context = a_.device->context();
  context.other_allocations = UINT32_MAX;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<VulkanImporter> importer,
                       VulkanImporter::Create(context));
  const std::shared_ptr<Client> client =
      Client::Connect({.runtime_dir = daemon_.runtime_dir()}).value();
  ASSERT_OK_AND_ASSIGN(const auto allocator,
                       DeviceAllocator::Create(LocalCache::Start(*client, *importer).value()));
  RefuseAbove(GiB(1));
  EXPECT_THAT(allocator->Allocate(KiB(10)), StatusIs(StatusCode::kResourceExhausted, "imports"));
  EXPECT_THAT(asked(), ElementsAre(MiB(4)));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(DeviceAllocatorTest, ABlockThatIsWhollyFreeGoesToTheCache) {
  const auto allocator = Create(Small());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation first, allocator->Allocate(KiB(60)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation second, allocator->Allocate(KiB(60)));
  EXPECT_EQ(allocator->stats().blocks, 2u);
  ASSERT_THAT(allocator->Free(first.handle), IsOk());
  EXPECT_EQ(allocator->stats().blocks, 1u);
  EXPECT_EQ(allocator->stats().leased, KiB(64));
  EXPECT_EQ(allocator->stats().peak_leased, KiB(128));
  EXPECT_EQ(cache_->stats().idle_blocks, 1u);
  ASSERT_THAT(allocator->Free(second.handle), IsOk());
  EXPECT_EQ(allocator->stats().leased, Bytes(0));
  EXPECT_EQ(cache_->stats().idle_blocks, 2u);
}

TEST_F(DeviceAllocatorTest, FindsSecondAndForeignFreesAndTheyAreHarmless) {
  const auto allocator = Create(Small());
  const auto other = Create(Small());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation own, allocator->Allocate(KiB(1)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation kept, allocator->Allocate(KiB(1)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation foreign, other->Allocate(KiB(1)));
  EXPECT_THAT(allocator->Free(foreign.handle), StatusIs(StatusCode::kNotFound, "another"));
  ASSERT_THAT(allocator->Free(own.handle), IsOk());
  EXPECT_THAT(allocator->Free(own.handle), StatusIs(StatusCode::kNotFound, "freed before"));
  EXPECT_THAT(allocator->Free({}), StatusIs(StatusCode::kNotFound, ""));
  EXPECT_EQ(allocator->stats().allocations, 1u);
  ASSERT_THAT(allocator->Free(kept.handle), IsOk());
  // Its block is not even there any more.
  EXPECT_THAT(allocator->Free(kept.handle), StatusIs(StatusCode::kNotFound, ""));
  EXPECT_THAT(other->Free(foreign.handle), IsOk());
}

TEST_F(DeviceAllocatorTest, AddressesAreAlignedAsAsked) {
  const auto allocator = Create(Small());
  ASSERT_THAT(allocator->Allocate(Bytes(1)), IsOk());
  for (const uint64_t alignment : {1, 512, 4096, 1 << 16, 1 << 21}) {
    ASSERT_OK_AND_ASSIGN(const DeviceAllocation allocation,
                         allocator->Allocate(Bytes(300), Bytes(alignment)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(HostOf(allocation)) % alignment, 0u) << alignment;
    EXPECT_EQ(allocation.range.offset().count() % 256, 0u);
    HostOf(allocation)[299] = 1;
  }
  for (const uint64_t alignment : {0, 3, 48}) {
    EXPECT_THAT(allocator->Allocate(Bytes(1), Bytes(alignment)),
                StatusIs(StatusCode::kInvalidArgument, "not a power of two"));
  }
}

TEST_F(DeviceAllocatorTest, SizesThatNoBlockCanHaveAreRefused) {
  const auto allocator = Create(Small());
  RefuseAbove(GiB(1));
  for (const uint64_t size : {~uint64_t{0}, ~uint64_t{0} - 255, uint64_t{1} << 63}) {
    for (const uint64_t alignment : {uint64_t{1}, uint64_t{1} << 63}) {
      EXPECT_THAT(allocator->Allocate(Bytes(size), Bytes(alignment)),
                  StatusIs(StatusCode::kResourceExhausted, ""));
    }
  }
  for (const Bytes size : asked()) EXPECT_GE(size, Bytes(uint64_t{1} << 63)) << "wrapped";
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(DeviceAllocatorTest, EmptyAllocationsHavePlacesOfTheirOwn) {
  const auto allocator = Create(Small());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation first, allocator->Allocate(Bytes(0)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation second, allocator->Allocate(Bytes(0)));
  EXPECT_NE(first.range.offset(), second.range.offset());
  EXPECT_EQ(first.range.size(), Bytes(0));
  EXPECT_TRUE(first.range.buffer().valid());
  EXPECT_THAT(allocator->Free(first.handle), IsOk());
  EXPECT_THAT(allocator->Free(second.handle), IsOk());
}

TEST_F(DeviceAllocatorTest, ZerosAreWrittenWhereTheyAreAskedForAndOnlyThere) {
  const auto allocator = Create(Small());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation before, allocator->Allocate(KiB(1)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation dirty, allocator->Allocate(KiB(4)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation after, allocator->Allocate(KiB(1)));
  std::memset(HostOf(before), 0xa5, 1024);
  std::memset(HostOf(dirty), 0xa5, 4096);
  std::memset(HostOf(after), 0xa5, 1024);
  ASSERT_THAT(allocator->Free(dirty.handle), IsOk());
  using Contents = DeviceAllocator::Contents;
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation clean,
                       allocator->Allocate(Bytes(4000), Bytes(1), Contents::kZeros));
  EXPECT_EQ(clean.range.offset(), dirty.range.offset());
  EXPECT_THAT(std::vector<uint8_t>(HostOf(clean), HostOf(clean) + 4000), ::testing::Each(0));
  EXPECT_EQ(HostOf(before)[1023], 0xa5);
  EXPECT_EQ(HostOf(after)[0], 0xa5);
}

TEST_F(DeviceAllocatorTest, LeasingABlockEndsWithItsTimeAndByCancellation) {
  const auto allocator = Create(Small());
  using Contents = DeviceAllocator::Contents;
  daemon_.HoldCalls(true);
  EXPECT_THAT(allocator->Allocate(Bytes(1), Bytes(1), Contents::kUndefined,
                                  {.timeout = absl::Milliseconds(20)}),
              StatusIs(StatusCode::kDeadlineExceeded, ""));
  const auto cancellation = std::make_shared<Cancellation>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    // One of them leases, and the other one waits for it.
    threads.emplace_back([&] {
      EXPECT_THAT(
          allocator->Allocate(Bytes(1), Bytes(1), Contents::kUndefined,
                              {.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
          StatusIs(StatusCode::kCancelled, ""));
    });
  }
  EXPECT_TRUE(WaitFor([&] { return daemon_.held_calls() > 0; }));
  cancellation->Cancel();
  for (std::thread& thread : threads) thread.join();
  daemon_.HoldCalls(false);
  ASSERT_THAT(allocator->Allocate(Bytes(1)), IsOk());
  EXPECT_EQ(allocator->stats().blocks, 1u);
}

// Of a block of 64 KiB: a small allocation keeps it, and a large one leaves no room.
class FullBlockTest : public DeviceAllocatorTest {
 protected:
  using Contents = DeviceAllocator::Contents;

  void SetUp() override {
    ASSERT_THAT(allocator_->Allocate(KiB(1)), IsOk());
    large_ = allocator_->Allocate(KiB(60)).value();
    daemon_.HoldCalls(true);
  }
  absl::StatusOr<DeviceAllocation> AllocateLarge(const CallOptions& call) {
    return allocator_->Allocate(KiB(60), Bytes(1), Contents::kUndefined, call);
  }

  const std::unique_ptr<DeviceAllocator> allocator_ = Create(Small());
  DeviceAllocation large_;
};

TEST_F(FullBlockTest, WhatIsFreedWhileTheDaemonIsAskedServesTheRequest) {
  const auto cancellation = std::make_shared<Cancellation>();
  absl::StatusOr<DeviceAllocation> allocation = absl::UnknownError("not yet");
  std::thread allocating([&] {
    allocation = AllocateLarge({.timeout = absl::InfiniteDuration(), .cancellation = cancellation});
  });
  EXPECT_TRUE(WaitFor([&] { return daemon_.held_calls() > 0; }));
  EXPECT_THAT(allocator_->Free(large_.handle), IsOk());
  // Stands for any error.
  cancellation->Cancel();
  allocating.join();
  ASSERT_THAT(allocation, IsOk());
  EXPECT_EQ(allocation->range.offset(), large_.range.offset());
  daemon_.HoldCalls(false);
}

TEST_F(FullBlockTest, WhatIsFreedWhileAnotherThreadLeasesServesTheRequest) {
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread leasing([&] {
    // For more than is freed.
    EXPECT_THAT(
        allocator_->Allocate(KiB(64), Bytes(1), Contents::kUndefined,
                             {.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
        StatusIs(StatusCode::kCancelled, ""));
  });
  EXPECT_TRUE(WaitFor([&] { return daemon_.held_calls() > 0; }));
  std::thread freeing([&] {
    // After the other one has begun to wait for its turn, which nobody can see.
    const absl::Time begin = absl::Now();
    EXPECT_TRUE(WaitFor([&] { return absl::Now() - begin > absl::Milliseconds(100); }));
    EXPECT_THAT(allocator_->Free(large_.handle), IsOk());
  });
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation allocation,
                       AllocateLarge({.timeout = absl::Milliseconds(300)}));
  EXPECT_EQ(allocation.range.offset(), large_.range.offset());
  freeing.join();
  cancellation->Cancel();
  leasing.join();
  daemon_.HoldCalls(false);
}

TEST_F(DeviceAllocatorTest, ABlockThatCannotBeImportedGoesBackWithoutAnybodysWaiting) {
  // The call that gives it back would wait for ever.
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> patient,
                       Client::Connect({.runtime_dir = daemon_.runtime_dir(),
                                        .call_timeout = absl::InfiniteDuration()}));
  ASSERT_OK_AND_ASSIGN(const auto allocator,
                       DeviceAllocator::Create(LocalCache::Start(*patient, *a_.importer).value()));
  daemon_.session_socket().AnswerWith([this](const v1::SessionRequest&) {
    daemon_.HoldCalls(true);
    return Refuse(5, "no such block");
  });
  EXPECT_THAT(allocator->Allocate(Bytes(1)), StatusIs(StatusCode::kNotFound, "no such block"));
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(DeviceAllocatorTest, OptionsOutOfRangeAreNamed) {
  for (const uint64_t granularity : {0, 1, 2, 48, 8192}) {
    EXPECT_THAT(DeviceAllocator::Create(cache_, {.granularity = Bytes(granularity)}),
                StatusIs(StatusCode::kInvalidArgument, "granularity"));
  }
  EXPECT_THAT(DeviceAllocator::Create(cache_, {.smallest_block = Bytes(0)}),
              StatusIs(StatusCode::kInvalidArgument, "smallest_block"));
  EXPECT_THAT(DeviceAllocator::Create(cache_, {.smallest_block = MiB(2), .largest_block = MiB(1)}),
              StatusIs(StatusCode::kInvalidArgument, "largest_block"));
}

TEST_F(DeviceAllocatorTest, NeedsACache) {
  EXPECT_THAT(DeviceAllocator::Create(nullptr), StatusIs(StatusCode::kInvalidArgument, "a cache"));
}

TEST_F(DeviceAllocatorTest, ItsEndGivesBackWhatWasNotFreed) {
  auto allocator = Create(Small());
  ASSERT_THAT(allocator->Allocate(KiB(60)), IsOk());
  ASSERT_THAT(allocator->Allocate(KiB(60)), IsOk());
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  allocator.reset();
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
  EXPECT_EQ(daemon_.releases().size(), 1u);
  EXPECT_EQ(a_.importer->stats().imports, 0u);
}

TEST_F(DeviceAllocatorTest, ThreadsAllocateWriteAndFreeAtTheSameTime) {
  constexpr int kThreads = 4;
  const auto allocator = Create(Small());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      std::vector<DeviceAllocation> held;
      for (int i = 0; i < 500; ++i) {
        if (held.size() < 10) {
          const auto allocation = allocator->Allocate(Bytes(1 + random() % 20'000));
          if (!allocation.ok()) {
            ++wrong;
            continue;
          }
          std::memset(HostOf(*allocation), thread, allocation->range.size().count());
          held.push_back(*allocation);
          continue;
        }
        for (const DeviceAllocation& allocation : held) {
          const uint8_t* const bytes = HostOf(allocation);
          if (bytes[0] != thread || bytes[allocation.range.size().count() - 1] != thread) ++wrong;
          if (!allocator->Free(allocation.handle).ok()) ++wrong;
        }
        held.clear();
      }
      for (const DeviceAllocation& allocation : held) {
        if (!allocator->Free(allocation.handle).ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(allocator->stats().blocks, 0u);
  ASSERT_THAT(cache_->Trim(), IsOk());
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

}  // namespace
}  // namespace heapbroker

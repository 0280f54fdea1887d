// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/local_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "gtest/gtest.h"
#include "heapbroker/device_allocator.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

constexpr Bytes kBlock = KiB(64);

v1::WatchEvent GiveBack(Bytes bytes, int32_t milliseconds = 999) {
  v1::WatchEvent event;
  event.mutable_give_back()->set_bytes(bytes.count());
  event.mutable_give_back()->mutable_time()->set_nanos(milliseconds * 1'000'000);
  return event;
}

class LocalCacheTest : public VulkanImporterTest {
 protected:
  std::shared_ptr<LocalCache> Start(const LocalCacheLimits& limits, WatchHandlers handlers = {}) {
    auto cache = LocalCache::Start(*a_.client, *a_.importer, limits, std::move(handlers));
    EXPECT_THAT(cache, IsOk());
    EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 1; }));
    return *std::move(cache);
  }
  // Blocks of one size, one for each allocation.
  static std::unique_ptr<DeviceAllocator> MakeAllocator(std::shared_ptr<LocalCache> cache) {
    return DeviceAllocator::Create(std::move(cache), {.memory = MemoryKind::kHostVisible,
                                                      .smallest_block = kBlock,
                                                      .largest_block = kBlock})
        .value();
  }
  // Leases so many blocks and lets them become idle.
  static void LeaveIdle(DeviceAllocator& allocator, int blocks) {
    std::vector<DeviceAllocationHandle> handles;
    for (int i = 0; i < blocks; ++i) handles.push_back(allocator.Allocate(kBlock)->handle);
    for (const DeviceAllocationHandle handle : handles) {
      ASSERT_THAT(allocator.Free(handle), IsOk());
    }
  }
  // The last that the daemon was told.
  uint64_t ReportedIdle() const {
    const std::vector<FakeDaemon::IdleReport> reports = daemon_.idle_reports();
    if (reports.empty() || reports.back().report.idle().empty()) return 0;
    return reports.back().report.idle(0).bytes();
  }

  const LocalCacheLimits kForEver{.max_bytes = GiB(1), .max_idle = absl::InfiniteDuration()};
};

TEST_F(LocalCacheTest, KeepsAFreeBlockForTheNextAllocationAndTellsThatItIsIdle) {
  const std::shared_ptr<LocalCache> cache = Start(kForEver);
  const auto allocator = MakeAllocator(cache);
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation first, allocator->Allocate(kBlock));
  const uint64_t block = first.range.buffer().facts().block_id;
  ASSERT_THAT(allocator->Free(first.handle), IsOk());
  EXPECT_EQ(cache->stats().idle_blocks, 1u);
  EXPECT_GE(cache->stats().idle, kBlock);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_EQ(a_.importer->stats().imports, 1u);
  EXPECT_TRUE(WaitFor([&] { return ReportedIdle() == cache->stats().idle.count(); }));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation second, allocator->Allocate(kBlock));
  EXPECT_EQ(second.range.buffer().facts().block_id, block);
  EXPECT_EQ(cache->stats().hits, 1u);
  EXPECT_EQ(cache->stats().misses, 1u);
  EXPECT_EQ(cache->stats().idle, Bytes(0));
  EXPECT_TRUE(WaitFor([&] { return ReportedIdle() == 0; }));
}

TEST_F(LocalCacheTest, AllocatorsOfOneKindShareItsBlocksOthersDoNot) {
  const std::shared_ptr<LocalCache> cache = Start(kForEver);
  LeaveIdle(*MakeAllocator(cache), 1);
  const auto same = MakeAllocator(cache);
  ASSERT_THAT(same->Allocate(kBlock), IsOk());
  EXPECT_EQ(cache->stats().hits, 1u);
  LeaveIdle(*MakeAllocator(cache), 1);
  ASSERT_OK_AND_ASSIGN(const auto other,
                       DeviceAllocator::Create(cache, {.memory = MemoryKind::kDeviceLocal}));
  ASSERT_THAT(other->Allocate(Bytes(1)), IsOk());
  EXPECT_EQ(cache->stats().hits, 1u);
}

TEST_F(LocalCacheTest, GivesBackWhatPassesItsBytes) {
  const std::shared_ptr<LocalCache> cache =
      Start({.max_bytes = kBlock + kBlock + kBlock, .max_idle = absl::InfiniteDuration()});
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 5);
  EXPECT_LE(cache->stats().idle, kBlock + kBlock + kBlock);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == cache->stats().idle_blocks; }));
  EXPECT_GE(cache->stats().idle_blocks, 1u);
}

TEST_F(LocalCacheTest, GivesBackWhatWasIdleForItsTime) {
  const std::shared_ptr<LocalCache> cache =
      Start({.max_bytes = GiB(1), .max_idle = absl::Milliseconds(1)});
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 3);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
  EXPECT_EQ(cache->stats().idle_blocks, 0u);
  EXPECT_EQ(a_.importer->stats().imports, 0u);
  EXPECT_TRUE(WaitFor([&] { return ReportedIdle() == 0; }));
}

TEST_F(LocalCacheTest, KeepsNothingWhereItMayNot) {
  const std::shared_ptr<LocalCache> cache = Start({.max_bytes = Bytes(0)});
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 2);
  EXPECT_EQ(cache->stats().idle_blocks, 0u);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(LocalCacheTest, AnswersTheDaemonWithAsMuchAsItAskedForAndPassesTheRequestOn) {
  Mutex mutex;
  std::vector<Bytes> asked;
  const std::shared_ptr<LocalCache> cache =
      Start(kForEver, {.on_give_back = [&](const GiveBackRequest& request) {
              MutexLock lock(mutex);
              // The cache has done its part already.
              EXPECT_EQ(daemon_.leased_blocks(), 2u);
              asked.push_back(request.bytes);
            }});
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 4);
  daemon_.Tell(GiveBack(kBlock + Bytes(1)));
  ASSERT_TRUE(WaitFor([&] {
    MutexLock lock(mutex);
    return asked.size() == 1;
  }));
  EXPECT_EQ(cache->stats().idle_blocks, 2u);
  EXPECT_GE(cache->stats().given_back_on_request, kBlock + kBlock);
  EXPECT_EQ(daemon_.releases().size(), 1u) << "in one call";
}

TEST_F(LocalCacheTest, AnAnswerTakesNoLongerThanTheDaemonWaitsAndTheRestGoesLater) {
  // Whose calls would otherwise wait for ever.
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> patient,
                       Client::Connect({.runtime_dir = daemon_.runtime_dir(),
                                        .call_timeout = absl::InfiniteDuration()}));
  std::atomic<bool> answered = false;
  ASSERT_OK_AND_ASSIGN(
      const std::shared_ptr<LocalCache> cache,
      LocalCache::Start(*patient, *a_.importer, kForEver,
                        {.on_give_back = [&](const GiveBackRequest&) { answered = true; }}));
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 2);
  daemon_.HoldCalls(true);
  daemon_.Tell(GiveBack(GiB(1), 50));
  EXPECT_TRUE(WaitFor([&] { return answered.load(); }));
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(LocalCacheTest, WhatIsInUseStaysWhateverTheDaemonAsksFor) {
  const std::shared_ptr<LocalCache> cache = Start(kForEver);
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 1);
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation used, allocator->Allocate(Bytes(1)));
  *static_cast<char*>(*used.range.host()) = 7;
  LeaveIdle(*allocator, 1);
  daemon_.Tell(GiveBack(GiB(1)));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 1; }));
  EXPECT_EQ(*static_cast<char*>(*used.range.host()), 7);
  EXPECT_THAT(allocator->Free(used.handle), IsOk());
}

TEST_F(LocalCacheTest, TrimIsDoneWhenItReturns) {
  const std::shared_ptr<LocalCache> cache = Start(kForEver);
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 3);
  const Bytes one = Bytes(cache->stats().idle.count() / 3);
  EXPECT_THAT(cache->Trim(one), IsOk());
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_THAT(cache->Trim(), IsOk());
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(LocalCacheTest, TrimEndsWithItsTimeAndByCancellation) {
  const std::shared_ptr<LocalCache> cache = Start(kForEver);
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 2);
  daemon_.HoldCalls(true);
  EXPECT_THAT(cache->Trim(Bytes(0), {.timeout = absl::Milliseconds(50)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  // The blocks went on their way; somebody else's are waited for.
  daemon_.HoldCalls(false);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
  LeaveIdle(*allocator, 1);
  daemon_.HoldCalls(true);
  daemon_.Tell(GiveBack(GiB(1)));
  ASSERT_TRUE(WaitFor([&] { return daemon_.held_calls() == 1; }));
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] { cancellation->Cancel(); });
  EXPECT_THAT(
      cache->Trim(Bytes(0), {.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
      StatusIs(absl::StatusCode::kCancelled, ""));
  canceller.join();
  daemon_.HoldCalls(false);
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(LocalCacheTest, ThreadsTrimAndLookWhileTheDaemonAsksForMemory) {
  const std::shared_ptr<LocalCache> cache = Start(kForEver);
  const auto allocator = MakeAllocator(cache);
  std::atomic<int> wrong = 0;
  const std::function<void()> jobs[] = {
      [&] { LeaveIdle(*allocator, 4); },
      [&] { daemon_.Tell(GiveBack(kBlock)); },
      [&] {
        if (!cache->Trim(kBlock).ok()) ++wrong;
      },
      [&] {
        const LocalCacheStats stats = cache->stats();
        if ((stats.idle == Bytes(0)) != (stats.idle_blocks == 0)) ++wrong;
        if (stats.idle_blocks > 4) ++wrong;
      },
  };
  std::vector<std::thread> threads;
  for (const std::function<void()>& job : jobs) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) job();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(cache->Trim(), IsOk());
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
  EXPECT_EQ(cache->stats().idle, Bytes(0));
  EXPECT_EQ(a_.importer->stats().imports, 0u);
}

TEST_F(LocalCacheTest, ItsEndGivesEverythingBack) {
  auto cache = Start(kForEver);
  auto allocator = MakeAllocator(std::move(cache));
  LeaveIdle(*allocator, 2);
  EXPECT_EQ(daemon_.leased_blocks(), 2u);
  allocator.reset();
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
  EXPECT_EQ(a_.importer->stats().imports, 0u);
  EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 0; }));
}

TEST_F(LocalCacheTest, KeepsNothingOnceItsWatchHasEnded) {
  Mutex mutex;
  std::vector<absl::Status> ends;
  const std::shared_ptr<LocalCache> cache =
      Start(kForEver, {.on_end = [&](const absl::Status& status) {
              MutexLock lock(mutex);
              ends.push_back(status);
            }});
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 2);
  daemon_.RefuseWatchesWith(grpc::Status(grpc::StatusCode::ABORTED, "another watch"));
  daemon_.BreakConnections();
  ASSERT_TRUE(WaitFor([&] {
    MutexLock lock(mutex);
    return !ends.empty();
  }));
  EXPECT_EQ(cache->stats().idle, Bytes(0));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
  LeaveIdle(*allocator, 1);
  EXPECT_EQ(cache->stats().idle, Bytes(0));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

class LostSessionCacheTest : public LocalCacheTest {
 protected:
  std::shared_ptr<LocalCache> StartNoting() {
    return Start(kForEver, {.on_session_lost = [this](const absl::Status& status) {
                   MutexLock lock(mutex_);
                   lost_ = status;
                 }});
  }
  void LoseTheSession() {
    daemon_.Stop();
    ASSERT_TRUE(WaitFor([&] {
      MutexLock lock(mutex_);
      return absl::IsUnavailable(lost_);
    }));
  }
  void GetTheNextSession() {
    daemon_.Restart();
    ASSERT_THAT(a_.client->AwaitSession({.timeout = absl::Seconds(20)}), IsOk());
    ASSERT_TRUE(WaitFor([&] { return daemon_.watches() == 1; }));
  }

  // From the daemon's next request until go_on_ the watch is busy in a handler.
  std::shared_ptr<LocalCache> StartBusy() {
    return Start(kForEver, {.on_give_back = [this](const GiveBackRequest&) {
                   entered_ = true;
                   while (!go_on_) std::this_thread::yield();
                 }});
  }
  void ChangeSessionsWhileItIsBusy() {
    daemon_.Tell(GiveBack(Bytes(1)));
    EXPECT_TRUE(WaitFor([&] { return entered_.load(); }));
    daemon_.Restart();
    EXPECT_THAT(a_.client->AwaitSession({.timeout = absl::Seconds(20)}), IsOk());
  }

  std::atomic<bool> entered_ = false;
  std::atomic<bool> go_on_ = false;
  Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LostSessionCacheTest, BlocksOfALostSessionAreNotKept) {
  const std::shared_ptr<LocalCache> cache = StartNoting();
  const auto allocator = MakeAllocator(cache);
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation used, allocator->Allocate(kBlock));
  LeaveIdle(*allocator, 1);
  ASSERT_NO_FATAL_FAILURE(LoseTheSession());
  EXPECT_EQ(cache->stats().idle_blocks, 0u);
  // What was imported stays valid, and is not kept either once it is free.
  static_cast<char*>(*used.range.host())[kBlock.count() - 1] = 1;
  ASSERT_THAT(allocator->Free(used.handle), IsOk());
  EXPECT_EQ(cache->stats().idle_blocks, 0u);
  EXPECT_TRUE(WaitFor([&] { return a_.importer->stats().imports == 0; }));
  EXPECT_THAT(allocator->Allocate(Bytes(1)), StatusIs(absl::StatusCode::kUnavailable, ""));
}

TEST_F(LostSessionCacheTest, NothingMoreIsCutOutOfBlocksOfALostSession) {
  const std::shared_ptr<LocalCache> cache = StartNoting();
  const auto allocator = MakeAllocator(cache);
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation old, allocator->Allocate(Bytes(1000)));
  ASSERT_NO_FATAL_FAILURE(LoseTheSession());
  EXPECT_THAT(allocator->Allocate(Bytes(1000)), StatusIs(absl::StatusCode::kUnavailable, ""));
  EXPECT_EQ(allocator->stats().lost, kBlock);
  EXPECT_EQ(allocator->stats().largest_free, Bytes(0));
  ASSERT_NO_FATAL_FAILURE(GetTheNextSession());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation next, allocator->Allocate(Bytes(1000)));
  EXPECT_NE(next.range.buffer().handle(), old.range.buffer().handle());
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  // The old one goes without the new daemon hearing of it, though the ids are the same.
  ASSERT_THAT(allocator->Free(old.handle), IsOk());
  EXPECT_TRUE(WaitFor([&] { return a_.importer->stats().imports == 1; }));
  EXPECT_EQ(allocator->stats().lost, Bytes(0));
  EXPECT_TRUE(daemon_.releases().empty());
}

TEST_F(LostSessionCacheTest, NothingMoreIsCutOutOfThemThoughTheWatchDoesNotTell) {
  const std::shared_ptr<LocalCache> cache = StartBusy();
  const auto allocator = MakeAllocator(cache);
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation old, allocator->Allocate(Bytes(1000)));
  ChangeSessionsWhileItIsBusy();
  const absl::StatusOr<DeviceAllocation> next = allocator->Allocate(Bytes(1000));
  go_on_ = true;
  ASSERT_THAT(next, IsOk());
  EXPECT_NE(next->range.buffer().handle(), old.range.buffer().handle());
  EXPECT_EQ(allocator->stats().allocations, 2u);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
}

TEST_F(LostSessionCacheTest, StatisticsTellOfThemThoughNeitherTheWatchNorAnAllocationDoes) {
  const std::shared_ptr<LocalCache> cache = StartBusy();
  const auto allocator = MakeAllocator(cache);
  ASSERT_THAT(allocator->Allocate(Bytes(1000)), IsOk());
  ChangeSessionsWhileItIsBusy();
  EXPECT_EQ(allocator->stats().lost, kBlock);
  go_on_ = true;
}

TEST_F(LostSessionCacheTest, BlocksOfTheNextSessionAreKeptAndReported) {
  const std::shared_ptr<LocalCache> cache = StartNoting();
  const auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 2);
  ASSERT_NO_FATAL_FAILURE(LoseTheSession());
  ASSERT_NO_FATAL_FAILURE(GetTheNextSession());
  LeaveIdle(*allocator, 2);
  EXPECT_EQ(cache->stats().idle_blocks, 2u);
  EXPECT_TRUE(WaitFor([&] { return ReportedIdle() == cache->stats().idle.count(); }));
  LeaveIdle(*allocator, 1);
  EXPECT_EQ(cache->stats().hits, 1u);
  daemon_.Tell(GiveBack(GiB(1)));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(LocalCacheTest, AForkedChildGetsAnErrorAndCanDropIt) {
  auto cache = Start(kForEver);
  auto allocator = MakeAllocator(cache);
  LeaveIdle(*allocator, 1);
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation used, allocator->Allocate(Bytes(1)));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = absl::IsFailedPrecondition(allocator->Allocate(Bytes(1)).status()) &&
                         absl::IsFailedPrecondition(allocator->Free(used.handle)) &&
                         absl::IsFailedPrecondition(cache->Trim());
    allocator.reset();
    cache.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_THAT(allocator->Allocate(Bytes(1)), IsOk());
  EXPECT_THAT(allocator->Free(used.handle), IsOk());
}

TEST_F(LocalCacheTest, RefusesATimeBelowZero) {
  EXPECT_THAT(
      LocalCache::Start(*a_.client, *a_.importer, {.max_idle = -absl::Seconds(1)}),
      StatusIs(absl::StatusCode::kInvalidArgument, "max_idle is -1s; zero or more is needed"));
}

}  // namespace
}  // namespace heapbroker

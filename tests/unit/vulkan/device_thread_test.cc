// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_thread.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::ElementsAre;

// One-shot event without absl's mutex, which the thread sanitizer misreads.
class Event {
 public:
  void Set() {
    MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!set_) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(DeviceThreadsTest, RunsEachLaneInOrder) {
  std::vector<int> allocations;
  std::vector<int> frees;
  DeviceThreads threads;
  for (int i = 0; i < 5; ++i) {
    threads.PostAllocation([&, i] { allocations.push_back(i); });
    threads.PostFree([&, i] { frees.push_back(i); });
  }
  threads.Stop();
  EXPECT_THAT(allocations, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(frees, ElementsAre(0, 1, 2, 3, 4));
}

TEST(DeviceThreadsTest, ABlockedFreeDelaysNoAllocation) {
  Event free_may_end;
  Event allocated;
  DeviceThreads threads;
  threads.PostFree([&] { free_may_end.Wait(); });
  threads.PostAllocation([&] { allocated.Set(); });
  allocated.Wait();
  free_may_end.Set();
}

TEST(DeviceThreadsTest, ABlockedAllocationDelaysNoFree) {
  Event allocation_may_end;
  Event freed;
  DeviceThreads threads;
  threads.PostAllocation([&] { allocation_may_end.Wait(); });
  threads.PostFree([&] { freed.Set(); });
  freed.Wait();
  allocation_may_end.Set();
}

TEST(DeviceThreadsTest, EveryJobOfALaneRunsOnTheSameThread) {
  std::vector<std::thread::id> allocating;
  std::vector<std::thread::id> freeing;
  DeviceThreads threads;
  for (int i = 0; i < 3; ++i) {
    threads.PostAllocation([&] { allocating.push_back(std::this_thread::get_id()); });
    threads.PostFree([&] { freeing.push_back(std::this_thread::get_id()); });
  }
  threads.Stop();
  EXPECT_THAT(allocating, testing::Each(allocating[0]));
  EXPECT_THAT(freeing, testing::Each(freeing[0]));
  EXPECT_NE(allocating[0], freeing[0]);
  EXPECT_NE(allocating[0], std::this_thread::get_id());
}

TEST(DeviceThreadsTest, StopRunsWhatWasPosted) {
  Event may_start;
  std::atomic<int> ran = 0;
  DeviceThreads threads;
  threads.PostAllocation([&] { may_start.Wait(); });
  threads.PostFree([&] { may_start.Wait(); });
  for (int i = 0; i < 100; ++i) {
    threads.PostAllocation([&] { ++ran; });
    threads.PostFree([&] { ++ran; });
  }
  may_start.Set();
  threads.Stop();
  EXPECT_EQ(ran, 200);
}

TEST(DeviceThreadsTest, StopRunsWhatJobsPostInTurn) {
  std::vector<std::string> ran;  // The jobs follow each other, so they never race.
  DeviceThreads threads;
  threads.PostFree([&] {
    ran.push_back("first");
    threads.PostAllocation([&] {
      ran.push_back("second");
      threads.PostFree([&] { ran.push_back("third"); });
    });
  });
  threads.Stop();
  EXPECT_THAT(ran, ElementsAre("first", "second", "third"));
}

TEST(DeviceThreadsTest, DropsWhatIsPostedAfterItStopped) {
  const auto held = std::make_shared<int>();
  bool ran = false;
  DeviceThreads threads;
  threads.Stop();
  threads.PostAllocation([&ran, held] { ran = true; });
  threads.PostFree([&ran, held] { ran = true; });
  threads.Stop();
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1) << "a dropped job is let go";
}

TEST(DeviceThreadsTest, LetsGoOfWhatAJobHeldBeforeStopReturns) {
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> watch = held;
  DeviceThreads threads;
  threads.PostAllocation([held = std::move(held)] {});
  threads.Stop();
  EXPECT_TRUE(watch.expired());
}

TEST(DeviceThreadsTest, StopsWithoutHavingHadAJob) { DeviceThreads threads; }

TEST(DeviceThreadsTest, ManyThreadsMayPost) {
  constexpr int kPosters = 4;
  constexpr int kJobs = 500;
  int allocations = 0;  // Each counter is touched by its lane's thread only.
  int frees = 0;
  DeviceThreads threads;
  std::vector<std::thread> posters;
  for (int i = 0; i < kPosters; ++i) {
    posters.emplace_back([&] {
      for (int job = 0; job < kJobs; ++job) {
        threads.PostAllocation([&] { ++allocations; });
        threads.PostFree([&] { ++frees; });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  threads.Stop();
  EXPECT_EQ(allocations, kPosters * kJobs);
  EXPECT_EQ(frees, kPosters * kJobs);
}

}  // namespace
}  // namespace heapbroker

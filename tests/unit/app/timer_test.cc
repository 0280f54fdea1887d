// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/timer.h"

#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

// When the timer ticked.
class Ticks {
 public:
  void Add() {
    MutexLock lock(mutex_);
    times_.push_back(absl::Now());
    added_.NotifyAll();
  }
  // The first `count`, once there are so many.
  std::vector<absl::Time> Await(size_t count) {
    MutexLock lock(mutex_);
    while (times_.size() < count) added_.Wait(mutex_);
    return times_;
  }
  size_t count() {
    MutexLock lock(mutex_);
    return times_.size();
  }

 private:
  Mutex mutex_;
  CondVar added_;
  std::vector<absl::Time> times_ ABSL_GUARDED_BY(mutex_);
};

class TimerTest : public testing::Test {
 protected:
  Ticks ticks_;
  Timer timer_{[this] { ticks_.Add(); }};
};

TEST_F(TimerTest, TicksAtTheTimeThatItWasToldAndNotBefore) {
  const absl::Time due = absl::Now() + absl::Milliseconds(20);
  timer_.WakeBy(due);
  EXPECT_GE(ticks_.Await(1)[0], due);
}

TEST_F(TimerTest, TicksOnceForTheEarliestOfSeveralTimes) {
  const absl::Time due = absl::Now() + absl::Milliseconds(50);
  timer_.WakeBy(due + absl::Hours(1));
  timer_.WakeBy(due);
  timer_.WakeBy(due + absl::Hours(2));
  EXPECT_GE(ticks_.Await(1)[0], due);
  timer_.Stop();
  EXPECT_EQ(ticks_.count(), 1u);
}

TEST_F(TimerTest, TicksAtOnceForATimeThatHasPassed) {
  timer_.WakeBy(absl::InfinitePast());
  ticks_.Await(1);
  timer_.WakeBy(absl::Now());
  ticks_.Await(2);
}

TEST_F(TimerTest, AnEarlierTimeIsTakenWhileItWaitsForTheEndOfDays) {
  for (const absl::Duration far :
       {absl::Hours(24 * 365) * 300, absl::Hours(24 * 365) * 10'000, absl::InfiniteDuration()}) {
    const size_t before = ticks_.count();
    timer_.WakeBy(absl::Now() + far);
    std::thread other([this] { timer_.WakeBy(absl::Now() + absl::Milliseconds(50)); });
    other.join();
    ticks_.Await(before + 1);
  }
}

TEST_F(TimerTest, StopsWhileItWaitsForTheEndOfDays) {
  timer_.WakeBy(absl::Now() + absl::Hours(24 * 365) * 10'000);
  timer_.Stop();
  EXPECT_EQ(ticks_.count(), 0u);
}

}  // namespace
}  // namespace heapbroker

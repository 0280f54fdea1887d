// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/base/mutex.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using Clock = std::chrono::steady_clock;

TEST(CondVarTest, WaitingEndsWithItsTimeout) {
  Mutex mutex;
  CondVar never;
  const Clock::time_point begin = Clock::now();
  MutexLock lock(mutex);
  while (never.WaitFor(mutex, std::chrono::milliseconds(1))) {
  }
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(1));
}

TEST(CondVarTest, ATimeoutThatHasPassedDoesNotWait) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  EXPECT_FALSE(never.WaitFor(mutex, std::chrono::nanoseconds(-1)));
  EXPECT_FALSE(never.WaitFor(mutex, std::chrono::nanoseconds::min()));
}

// Centuries from now are beyond what the clock can say.
TEST(CondVarTest, TheLongestTimeoutWaitsAndLetsGoOfTheMutexMeanwhile) {
  Mutex mutex;
  CondVar changed;
  bool waits = false;
  bool over = false;
  bool woken = true;
  std::thread waiting([&] {
    MutexLock lock(mutex);
    waits = true;
    while (!over && woken) woken = changed.WaitFor(mutex, std::chrono::nanoseconds::max());
  });
  // Sees that it waits only while it does so without the mutex, or has given up.
  const auto has_begun = [&] {
    MutexLock lock(mutex);
    return waits;
  };
  while (!has_begun()) std::this_thread::yield();
  {
    MutexLock lock(mutex);
    EXPECT_TRUE(woken);
    over = true;
  }
  changed.NotifyAll();
  waiting.join();
}

}  // namespace
}  // namespace heapbroker

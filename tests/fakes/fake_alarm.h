// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// An alarm that tells what it was set to.
#ifndef TESTS_FAKES_FAKE_ALARM_H_
#define TESTS_FAKES_FAKE_ALARM_H_

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "daemon/core/alarm.h"

namespace heapbroker {

// Never goes off by itself: the test calls Tick. Thread-safe.
class FakeAlarm final : public Alarm {
 public:
  void WakeBy(absl::Time time) override {
    MutexLock lock(mutex_);
    time_ = std::min(time_, time);
  }

  // The earliest time since the last call; InfiniteFuture where none was set.
  absl::Time TakeTime() {
    MutexLock lock(mutex_);
    return std::exchange(time_, absl::InfiniteFuture());
  }

 private:
  Mutex mutex_;
  absl::Time time_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace heapbroker
#endif  // TESTS_FAKES_FAKE_ALARM_H_

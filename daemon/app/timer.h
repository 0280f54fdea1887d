// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The timer of a device.
#ifndef DAEMON_APP_TIMER_H_
#define DAEMON_APP_TIMER_H_

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "daemon/core/alarm.h"

namespace heapbroker {

// A thread that sleeps until the earliest time that it was told, and not a moment
// less: a quiet daemon is not woken by it. Thread-safe.
class Timer final : public Alarm {
 public:
  // `tick` runs on the timer's thread, with no lock held; must not block.
  explicit Timer(std::function<void()> tick);
  // As Stop().
  ~Timer() override;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void WakeBy(absl::Time time) override;

  // `tick` is not called any more when this returns. Not for the tick itself.
  void Stop();

 private:
  void Run();

  const std::function<void()> tick_;
  Mutex mutex_;
  CondVar changed_;
  absl::Time due_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses all of the others.
};

}  // namespace heapbroker
#endif  // DAEMON_APP_TIMER_H_

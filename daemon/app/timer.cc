// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/timer.h"

#include <utility>

#include "absl/time/clock.h"

namespace heapbroker {

Timer::Timer(std::function<void()> tick) : tick_(std::move(tick)), thread_([this] { Run(); }) {}

Timer::~Timer() { Stop(); }

void Timer::WakeBy(absl::Time time) {
  MutexLock lock(mutex_);
  if (time >= due_) return;
  due_ = time;
  changed_.NotifyOne();
}

void Timer::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Timer::Run() {
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!stopping_ && absl::Now() < due_) {
        if (due_ == absl::InfiniteFuture()) {
          changed_.Wait(mutex_);
        } else {
          changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(due_ - absl::Now()));
        }
      }
      if (stopping_) return;
      due_ = absl::InfiniteFuture();
    }
    tick_();
  }
}

}  // namespace heapbroker

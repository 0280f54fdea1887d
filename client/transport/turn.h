// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One at a time, without a lock held meanwhile.
#ifndef CLIENT_TRANSPORT_TURN_H_
#define CLIENT_TRANSPORT_TURN_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace heapbroker {

// What must happen one after the other may take long (a system call, a driver's
// call), and no lock of ours is held over such a thing. So whoever wants to do
// it takes the turn, and the lock guards only whose turn it is. Thread-safe.
class Turn {
 public:
  // Waits for the turn, at most `timeout`; false when that passed.
  bool Take(absl::Duration timeout = absl::InfiniteDuration()) {
    const absl::Time deadline = absl::Now() + timeout;
    MutexLock lock(mutex_);
    while (taken_) {
      if (timeout == absl::InfiniteDuration()) {
        given_.Wait(mutex_);
        continue;
      }
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      given_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
    }
    taken_ = true;
    return true;
  }

  // Only by who has it.
  void Give() {
    {
      MutexLock lock(mutex_);
      taken_ = false;
    }
    given_.NotifyOne();
  }

 private:
  Mutex mutex_;
  CondVar given_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
};

// Has the turn from construction to destruction, unless it waited too long.
class TurnHolder {
 public:
  explicit TurnHolder(Turn& turn, absl::Duration timeout = absl::InfiniteDuration())
      : turn_(turn), holds_(turn.Take(timeout)) {}
  ~TurnHolder() {
    if (holds_) turn_.Give();
  }
  TurnHolder(const TurnHolder&) = delete;
  TurnHolder& operator=(const TurnHolder&) = delete;

  bool holds() const { return holds_; }

 private:
  Turn& turn_;
  const bool holds_;
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_TURN_H_

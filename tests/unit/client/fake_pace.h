// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Time and chance of whoever connects again, driven by the test.
#ifndef TESTS_UNIT_CLIENT_FAKE_PACE_H_
#define TESTS_UNIT_CLIENT_FAKE_PACE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/transport/reconnect_pace.h"
#include "common/base/mutex.h"

namespace heapbroker {

// What the test has in hand. Thread-safe.
class PaceControl {
 public:
  // As many more pauses end at once.
  void Go(int pauses = 1) {
    {
      MutexLock lock(mutex_);
      allowed_ += pauses;
    }
    changed_.NotifyAll();
  }
  void SetChance(double chance) {
    MutexLock lock(mutex_);
    chance_ = chance;
  }
  void Advance(absl::Duration by) {
    MutexLock lock(mutex_);
    now_ += by;
  }
  // All pauses so far, the one that lasts included.
  std::vector<absl::Duration> pauses() const {
    MutexLock lock(mutex_);
    return pauses_;
  }

 private:
  friend class FakePace;

  mutable Mutex mutex_;
  CondVar changed_;
  absl::Duration now_ ABSL_GUARDED_BY(mutex_);
  double chance_ ABSL_GUARDED_BY(mutex_) = 0;
  int allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<absl::Duration> pauses_ ABSL_GUARDED_BY(mutex_);
};

class FakePace final : public ReconnectPace {
 public:
  explicit FakePace(std::shared_ptr<PaceControl> control) : control_(std::move(control)) {}

  absl::Duration Now() override {
    MutexLock lock(control_->mutex_);
    return control_->now_;
  }
  double Chance() override {
    MutexLock lock(control_->mutex_);
    return control_->chance_;
  }
  void Pause(absl::Duration delay) override {
    MutexLock lock(control_->mutex_);
    control_->pauses_.push_back(delay);
    while (control_->allowed_ == 0 && !control_->interrupted_) {
      control_->changed_.Wait(control_->mutex_);
    }
    if (control_->allowed_ > 0) --control_->allowed_;
  }
  void Interrupt() override {
    {
      MutexLock lock(control_->mutex_);
      control_->interrupted_ = true;
    }
    control_->changed_.NotifyAll();
  }

 private:
  const std::shared_ptr<PaceControl> control_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_FAKE_PACE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Time and chance, for whoever connects again.
#ifndef CLIENT_TRANSPORT_RECONNECT_PACE_H_
#define CLIENT_TRANSPORT_RECONNECT_PACE_H_

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace heapbroker {

// What tests drive instead of sleeping. Thread-safe.
class ReconnectPace {
 public:
  virtual ~ReconnectPace() = default;
  // As SteadyNow.
  virtual absl::Duration Now() = 0;
  // From [0, 1), all alike.
  virtual double Chance() = 0;
  // Returns after `delay`, or at once when it was or is interrupted.
  virtual void Pause(absl::Duration delay) = 0;
  // Ends this pause and all later ones.
  virtual void Interrupt() = 0;
};

class RealReconnectPace final : public ReconnectPace {
 public:
  absl::Duration Now() override;
  double Chance() override;
  void Pause(absl::Duration delay) override;
  void Interrupt() override;

 private:
  Mutex mutex_;
  CondVar changed_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_RECONNECT_PACE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// When a call must have ended.
#ifndef CLIENT_TRANSPORT_CALL_LIMITS_H_
#define CLIENT_TRANSPORT_CALL_LIMITS_H_

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "heapbroker/cancellation.h"

namespace heapbroker {

// One time for all steps of a call together, and who may end it before. Immutable.
class CallLimits {
 public:
  // No limits.
  CallLimits() = default;
  // From now on.
  explicit CallLimits(absl::Duration timeout, std::shared_ptr<Cancellation> cancellation = nullptr)
      : timeout_(timeout), end_(SteadyNow() + timeout), cancellation_(std::move(cancellation)) {}
  CallLimits(const CallOptions& options, absl::Duration default_timeout)
      : CallLimits(options.timeout.value_or(default_timeout), options.cancellation) {}

  // What it was at the beginning, for messages.
  absl::Duration timeout() const { return timeout_; }
  bool endless() const { return end_ == absl::InfiniteDuration(); }
  absl::Duration left() const { return std::max(end_ - SteadyNow(), absl::ZeroDuration()); }
  // Null where nobody may.
  const std::shared_ptr<Cancellation>& cancellation() const { return cancellation_; }
  bool cancelled() const { return cancellation_ != nullptr && cancellation_->cancelled(); }

 private:
  absl::Duration timeout_ = absl::InfiniteDuration();
  absl::Duration end_ = absl::InfiniteDuration();  // As SteadyNow.
  std::shared_ptr<Cancellation> cancellation_;
};

// For one step of a call.
inline CallOptions LeftOf(const CallLimits& limits) {
  return {.timeout = limits.left(), .cancellation = limits.cancellation()};
}

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_CALL_LIMITS_H_

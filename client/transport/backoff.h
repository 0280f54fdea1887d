// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How long to wait before each attempt to connect again.
#ifndef CLIENT_TRANSPORT_BACKOFF_H_
#define CLIENT_TRANSPORT_BACKOFF_H_

#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "heapbroker/reconnect.h"

namespace heapbroker {

// INVALID_ARGUMENT for what ReconnectOptions does not allow; names the field.
absl::Status CheckReconnectOptions(const ReconnectOptions& options);

// Bookkeeping only: knows neither the time nor chance. Not thread-safe.
class Backoff {
 public:
  // `options` have been checked.
  explicit Backoff(const ReconnectOptions& options)
      : options_(options), next_(options.initial_delay) {}

  // Before the next attempt. `chance` is from [0, 1), all alike.
  absl::Duration Next(double chance) {
    const absl::Duration delay = next_;
    next_ = std::min(2 * next_, options_.max_delay);
    return delay * (1 - options_.jitter * chance);
  }

  void SessionLasted(absl::Duration time) {
    if (time >= options_.max_delay) next_ = options_.initial_delay;
  }

 private:
  const ReconnectOptions options_;
  absl::Duration next_;
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_BACKOFF_H_

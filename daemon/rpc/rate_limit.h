// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How often a client may do something.
#ifndef DAEMON_RPC_RATE_LIMIT_H_
#define DAEMON_RPC_RATE_LIMIT_H_

#include <cstdint>

#include "absl/time/time.h"

namespace heapbroker {

// `burst` at once, and one more for each `interval` that passes, up to the burst
// again. A clock that is set back costs the client no more than a burst. Not
// thread-safe.
class RateLimit {
 public:
  RateLimit(uint32_t burst, absl::Duration interval)
      : interval_(interval), full_(interval * burst) {}

  // True when it may happen at `now`, which then counts.
  bool Take(absl::Time now);

 private:
  const absl::Duration interval_;
  const absl::Duration full_;  // The time in which all of the burst comes back.
  // When all of the burst will be there again.
  absl::Time full_at_ = absl::InfinitePast();
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_RATE_LIMIT_H_

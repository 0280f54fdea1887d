// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Keeps peers from filling the log.
#ifndef DAEMON_SESSION_LOG_LIMITER_H_
#define DAEMON_SESSION_LOG_LIMITER_H_

#include <chrono>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/posix/logging.h"

namespace heapbroker {

// Passes messages on at a bounded rate: `burst` at once, and one more for each
// `interval` that passes. The next message that is passed on says how many were
// left out. Not thread-safe.
class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  LogLimiter(Logger& logger, uint32_t burst, Clock::duration interval);

  // `now` must not go backwards.
  void Write(Clock::time_point now, LogLevel level, absl::string_view message);

 private:
  // True when a message may be written at `now`, which is then counted.
  bool Take(Clock::time_point now);

  Logger& logger_;
  const Clock::duration interval_;
  const Clock::duration full_;  // The time in which all of the burst comes back.
  // When all of the burst will be there again; before that, each interval in
  // between is one message that was spent.
  Clock::time_point full_at_{};
  uint64_t left_out_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_LOG_LIMITER_H_

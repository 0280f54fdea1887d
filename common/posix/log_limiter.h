// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Keeps peers from filling the log.
#ifndef COMMON_POSIX_LOG_LIMITER_H_
#define COMMON_POSIX_LOG_LIMITER_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

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
  // The same for whoever writes by himself: the message as it is to be written; empty
  // where it is left out.
  std::optional<std::string> Pass(Clock::time_point now, absl::string_view message);

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
#endif  // COMMON_POSIX_LOG_LIMITER_H_

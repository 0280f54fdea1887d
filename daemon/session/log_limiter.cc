// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/log_limiter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace heapbroker {

LogLimiter::LogLimiter(Logger& logger, uint32_t burst, Clock::duration interval)
    : logger_(logger), interval_(interval), full_(interval * burst) {}

bool LogLimiter::Take(Clock::time_point now) {
  const Clock::time_point next = std::max(full_at_, now) + interval_;
  if (next > now + full_) return false;
  full_at_ = next;
  return true;
}

void LogLimiter::Write(Clock::time_point now, LogLevel level, absl::string_view message) {
  if (!Take(now)) {
    ++left_out_;
    return;
  }
  if (left_out_ == 0) {
    logger_.Write(level, message);
  } else {
    logger_.Write(level, absl::StrCat(message, " (", left_out_, " such lines left out before)"));
    left_out_ = 0;
  }
}

}  // namespace heapbroker

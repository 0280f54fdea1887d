// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/log_limiter.h"

#include <algorithm>
#include <utility>

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

std::optional<std::string> LogLimiter::Pass(Clock::time_point now, absl::string_view message) {
  if (!Take(now)) {
    ++left_out_;
    return std::nullopt;
  }
  const uint64_t left_out = std::exchange(left_out_, 0);
  if (left_out == 0) return std::string(message);
  return absl::StrCat(message, " (", left_out, " such lines left out before)");
}

void LogLimiter::Write(Clock::time_point now, LogLevel level, absl::string_view message) {
  if (const auto line = Pass(now, message)) logger_.Write(level, *line);
}

}  // namespace heapbroker

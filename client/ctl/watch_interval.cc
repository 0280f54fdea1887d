// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/watch_interval.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::StatusOr<absl::Duration> ParseWatchInterval(absl::string_view text) {
  const bool has_unit = !text.empty() && absl::ascii_isalpha(static_cast<uint8_t>(text.back()));
  absl::Duration interval;
  const bool read = absl::ParseDuration(has_unit ? text : absl::StrCat(text, "s"), &interval);
  if (read && interval >= kMinWatchInterval && interval <= kMaxWatchInterval) return interval;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no interval: 100ms to 1h, as in 500ms, 2s or 1m"));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How often `stats --watch` shows new figures.
#ifndef CLIENT_CTL_WATCH_INTERVAL_H_
#define CLIENT_CTL_WATCH_INTERVAL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace heapbroker {

// What the daemon accepts.
inline constexpr absl::Duration kMinWatchInterval = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxWatchInterval = absl::Hours(1);

// A number with a unit ("500ms", "2.5s", "1m", "1h", also several as in "1m30s"),
// or a number alone, which is seconds. INVALID_ARGUMENT quotes the text and says
// what is allowed.
absl::StatusOr<absl::Duration> ParseWatchInterval(absl::string_view text);

}  // namespace heapbroker
#endif  // CLIENT_CTL_WATCH_INTERVAL_H_

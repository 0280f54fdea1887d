// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Durations as people write them.
#ifndef DAEMON_APP_DURATION_H_
#define DAEMON_APP_DURATION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace heapbroker {

// Whole numbers, each with a unit: `ms`, `s` or `sec`, `m` or `min`, `h`, `d`, in
// lower case: "90s", "10min", "1h30m", "1h 30min". Or "0".
//   INVALID_ARGUMENT  anything else, and what is over 100 years; quotes the text,
//                     gives the position in it and says what is allowed
absl::StatusOr<absl::Duration> ParseDurationOption(absl::string_view text);

}  // namespace heapbroker
#endif  // DAEMON_APP_DURATION_H_

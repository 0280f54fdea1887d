// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/backoff.h"

#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::Status CheckReconnectOptions(const ReconnectOptions& options) {
  if (options.initial_delay <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("ReconnectOptions.initial_delay is ",
                                                   absl::FormatDuration(options.initial_delay),
                                                   "; it must be more than zero"));
  }
  if (options.max_delay < options.initial_delay) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ReconnectOptions.max_delay is ", absl::FormatDuration(options.max_delay),
        "; it must be at least initial_delay, ", absl::FormatDuration(options.initial_delay)));
  }
  // Written so that what is no number is refused.
  if (!(options.jitter >= 0 && options.jitter <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReconnectOptions.jitter is ", options.jitter, "; it must be from 0 to 1"));
  }
  return absl::OkStatus();
}

}  // namespace heapbroker

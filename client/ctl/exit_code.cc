// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/exit_code.h"

namespace heapbroker {

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kFine;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnreachable;
    default:
      return ExitCode::kRefused;
  }
}

}  // namespace heapbroker

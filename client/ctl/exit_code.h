// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What heapbrokerctl says to scripts.
#ifndef CLIENT_CTL_EXIT_CODE_H_
#define CLIENT_CTL_EXIT_CODE_H_

#include "absl/status/status.h"

namespace heapbroker {

enum class ExitCode {
  kFine = 0,
  kRefused = 1,      // By the daemon. For `health`: it is not serving.
  kUsage = 2,        // The command line makes no sense.
  kUnreachable = 3,  // No daemon, or none that answers.
};

// For the error that a command ended with. NOT_FOUND (no socket), UNAVAILABLE
// and DEADLINE_EXCEEDED mean that there was nobody to ask: Queries has another
// error for what a daemon does not find.
ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace heapbroker
#endif  // CLIENT_CTL_EXIT_CODE_H_

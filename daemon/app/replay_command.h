// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// heapbrokerd --replay.
#ifndef DAEMON_APP_REPLAY_COMMAND_H_
#define DAEMON_APP_REPLAY_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/app/options.h"
#include "daemon/trace/replayer.h"

namespace heapbroker {

// The configurations that the options ask for, on the devices of a recording. None
// where they ask for nothing but the recorded one.
//   INVALID_ARGUMENT     a budget for what the recording does not have; too many
//                        combinations
//   FAILED_PRECONDITION  pools of what no device of the recording has
absl::StatusOr<std::vector<ReplayConfiguration>> MakeConfigurations(
    const ReplayOptions& options, absl::Span<const TracedDevice> devices);

// The table, for standard output. Errors as MakeConfigurations and Replay.
absl::StatusOr<std::string> RunReplay(const ReplayOptions& options);

}  // namespace heapbroker
#endif  // DAEMON_APP_REPLAY_COMMAND_H_

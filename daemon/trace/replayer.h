// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What other pools would have made of a recording.
#ifndef DAEMON_TRACE_REPLAYER_H_
#define DAEMON_TRACE_REPLAYER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/trace/device_replay.h"
#include "daemon/trace/trace.h"

namespace heapbroker {

// Pools to try, for each device of a recording.
struct ReplayConfiguration {
  std::string name;  // For the table.
  std::vector<LedgerOptions> devices;
};

struct DeviceResult {
  ReplayFigures figures;
  // What the device would have taken without any cache, less what it takes; unset
  // where the recording has no times.
  std::optional<absl::Duration> saved;
};

struct ConfigurationResult {
  std::string name;
  std::vector<DeviceResult> devices;
};

struct ReplayResult {
  TraceStart start;
  std::vector<ConfigurationResult> configurations;  // The recorded one first.
  // Sentences: what of the recording is missing, and whether the recorded
  // configuration led to what was recorded.
  std::vector<std::string> notes;
  // The recording is whole, and replaying it gave exactly its statistics.
  bool exact = false;
  uint64_t turns = 0;  // Of the recording.
  double turns_per_second = 0;
};

// Reads the recording once for each configuration, the recorded one first.
//   INVALID_ARGUMENT  a configuration has other devices than the recording
//   others            as TraceReader
absl::StatusOr<ReplayResult> Replay(const std::string& path,
                                    absl::Span<const ReplayConfiguration> configurations);

// For people, each line ended.
std::string RenderReplay(const ReplayResult& result);

}  // namespace heapbroker
#endif  // DAEMON_TRACE_REPLAYER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a recording holds, in the core's own words.
#ifndef DAEMON_TRACE_TRACE_H_
#define DAEMON_TRACE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/core/device_info.h"
#include "daemon/core/device_ledger.h"
#include "daemon/core/device_observer.h"
#include "heapbroker/units.h"

namespace heapbroker {

// The first bytes of every recording.
inline constexpr absl::string_view kTraceMagic = "HBTRACE\n";
inline constexpr uint32_t kTraceFormat = 2;
// The longest record: far more than the largest request or header needs, and so
// little that a file that lies cannot make a reader take much memory.
inline constexpr size_t kMaxTraceRecord = size_t{4} << 20;

struct TracedDevice {
  DeviceInfo info;
  LedgerOptions options;
};

// All that is known when a recording begins.
struct TraceStart {
  std::string daemon_version;
  absl::Time time;
  std::string comment;  // How it came to be, where no daemon recorded it.
  std::vector<TracedDevice> devices;
};

struct TracedTurn {
  uint32_t device = 0;  // Index into TraceStart::devices.
  RecordedTurn turn;
};

}  // namespace heapbroker
#endif  // DAEMON_TRACE_TRACE_H_

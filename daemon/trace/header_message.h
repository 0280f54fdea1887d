// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of a recording as messages.
#ifndef DAEMON_TRACE_HEADER_MESSAGE_H_
#define DAEMON_TRACE_HEADER_MESSAGE_H_

#include "absl/status/statusor.h"
#include "daemon/core/stats.h"
#include "daemon/trace/trace.h"
#include "heapbroker/v1/trace.pb.h"

namespace heapbroker {

v1::TraceHeader HeaderMessage(const TraceStart& start);

// Anything that a replay relies on is checked: the file may come from anyone.
//   INVALID_ARGUMENT     names the field and what is allowed
//   FAILED_PRECONDITION  another format
absl::StatusOr<TraceStart> ParseHeader(const v1::TraceHeader& message);

// What the same turns always lead to: nothing that the driver or the time says.
v1::TraceStats StatsMessage(const DeviceStats& stats);

}  // namespace heapbroker
#endif  // DAEMON_TRACE_HEADER_MESSAGE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The messages of Watch as the core's values, and back.
#ifndef DAEMON_RPC_CONVERT_WATCH_H_
#define DAEMON_RPC_CONVERT_WATCH_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/devices.h"
#include "daemon/rpc/session_reports.h"
#include "daemon/rpc/watch_queue.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

// All of the message, or nothing: no device hears of a report that is wrong for
// another one.
//   INVALID_ARGUMENT  a device or heap that is not there, or a heap twice; begins
//                     with the field's name
absl::StatusOr<IdleByDevice> IdleByDeviceOf(const v1::WatchRequest& message,
                                            const Devices& devices);

// Deadlines travel as the time that is left at `now`.
v1::WatchEvent WatchEventMessage(const WatchedEvent& event, absl::Time now);

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONVERT_WATCH_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The turns of a device's ledger as messages.
#ifndef DAEMON_TRACE_TURN_MESSAGE_H_
#define DAEMON_TRACE_TURN_MESSAGE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/trace/name_hash.h"
#include "daemon/trace/trace.h"
#include "heapbroker/v1/trace.pb.h"

namespace heapbroker {

// `start` is the recording's; names of segments become hashes under `key`.
v1::TraceTurn TurnMessage(const TracedTurn& turn, absl::Time start, const NameHashKey& key);

// Segments get names made of their hashes. What the core checks of a request is
// left to it.
//   INVALID_ARGUMENT  a turn that is not known, or a value that has no meaning
absl::StatusOr<TracedTurn> ParseTurn(const v1::TraceTurn& message, absl::Time start);

}  // namespace heapbroker
#endif  // DAEMON_TRACE_TURN_MESSAGE_H_

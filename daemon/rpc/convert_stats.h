// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The core's statistics as the messages of PoolStats.
#ifndef DAEMON_RPC_CONVERT_STATS_H_
#define DAEMON_RPC_CONVERT_STATS_H_

#include <cstdint>

#include "daemon/core/sessions.h"
#include "daemon/core/stats.h"
#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

// Whether the caller may see whose sessions and segments these are.
enum class Names { kShown, kHidden };

v1::DeviceStats DeviceStatsMessage(const DeviceStats& stats);

v1::SessionInfo SessionMessage(const Session& session, const HolderStats& holdings, Names names);

// Shows no names: the session's are elsewhere.
v1::LeaseInfo LeaseMessage(const LeaseStats& lease);

// `device_index` is that of the device whose segment it is.
v1::SegmentInfo SegmentMessage(const SegmentStats& segment, uint32_t device_index, Names names);

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONVERT_STATS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Limits on messages that both edges must agree on.
#ifndef DAEMON_MESSAGES_LIMITS_H_
#define DAEMON_MESSAGES_LIMITS_H_

#include <cstdint>

namespace heapbroker {

// The largest request of a gRPC call, in bytes: what one edge enforces and the
// other one tells clients in their welcome.
inline constexpr uint32_t kMaxRequestBytes = 64 * 1024;

// The most blocks in one Fetch: enough for the arenas of a model in one packet, and
// few enough that no session has many descriptors unread.
inline constexpr uint32_t kMaxBlocksPerFetch = 16;

}  // namespace heapbroker
#endif  // DAEMON_MESSAGES_LIMITS_H_

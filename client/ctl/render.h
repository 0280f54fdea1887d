// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Replies of the daemon as text for people, and as JSON for programs. Pure
// functions; every name goes through Printable() on its way into a table.
#ifndef CLIENT_CTL_RENDER_H_
#define CLIENT_CTL_RENDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpc/health/v1/health.pb.h"
#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

// For each device: what it is, with a warning for a software driver, its heaps,
// its pools with a total, and where blocks came from. At most 100 columns wide
// unless a name or a count is unusually long. `now` is the time that ages are
// counted to.
std::string RenderStats(const v1::GetStatsResponse& stats, absl::Time now);

// One line for each session, and a total.
std::string RenderSessions(const v1::ListSessionsResponse& sessions, absl::Time now);

// One line for each segment, and a total.
std::string RenderSegments(const v1::ListSegmentsResponse& segments);

// "SERVING" and the other words of the health protocol.
std::string RenderHealth(const grpc::health::v1::HealthCheckResponse& health);

// Protobuf's JSON of a reply, with the names of the .proto files and with zeros
// written out, so that a program finds every field. 64-bit numbers are strings
// and bytes are base64, as that format has them. INTERNAL if a reply has no JSON.
absl::StatusOr<std::string> RenderJson(const google::protobuf::Message& reply);

// "12 s", "3 min 12 s", "5 h 2 min", "3 d 4 h". Negative ages, from clocks that
// disagree, are "0 s".
std::string FormatAge(absl::Duration age);

// "92.3 %"; "-" where there is nothing to count.
std::string FormatRate(uint64_t part, uint64_t whole);

}  // namespace heapbroker
#endif  // CLIENT_CTL_RENDER_H_

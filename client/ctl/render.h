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
#include "heapbroker/v1/admin.pb.h"
#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

// Text is at most 80 columns wide unless names or figures are unusually long;
// figures that are zero everywhere are left out where they tell little. `now` is
// the time that ages are counted to.

// For each device: what it is, with a warning for a software driver, what became
// of requests, its heaps, its pools with a total, and where blocks came from.
std::string RenderStats(const v1::GetStatsResponse& stats, absl::Time now);

// For each device: its pools with their limits, what they hold, and why requests
// missed and blocks were not kept.
std::string RenderPools(const v1::GetStatsResponse& stats);

// For each device: its heaps with their limits, what the driver says, what its
// memory types are.
std::string RenderHeaps(const v1::GetStatsResponse& stats);

// One line for each lease, and a total.
std::string RenderLeases(const v1::ListLeasesResponse& leases, absl::Time now);

// What an Admin.Trim frees.
std::string RenderTrim(const v1::TrimResponse& trimmed);

// One line for each session, and a total.
std::string RenderSessions(const v1::ListSessionsResponse& sessions, absl::Time now);

// One line for each segment, and a total.
std::string RenderSegments(const v1::ListSegmentsResponse& segments);

// "SERVING" and the other words of the health protocol.
std::string RenderHealth(const grpc::health::v1::HealthCheckResponse& health);

// Protobuf's JSON of a reply, with the names of the .proto files and with zeros
// written out, so that a program finds every field. 64-bit numbers are strings
// and bytes are base64, as that format has them. kLine: on one line, for streams
// of replies. INTERNAL if a reply has no JSON.
enum class JsonStyle { kIndented, kLine };
absl::StatusOr<std::string> RenderJson(const google::protobuf::Message& reply,
                                       JsonStyle style = JsonStyle::kIndented);

}  // namespace heapbroker
#endif  // CLIENT_CTL_RENDER_H_

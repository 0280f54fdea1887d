// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/render.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/cells.h"
#include "client/ctl/table.h"

namespace heapbroker {
namespace {

using Align = Table::Align;
using Show = Table::Show;

std::string StateName(v1::SegmentInfo::State state) {
  switch (state) {
    case v1::SegmentInfo::STATE_FILLING:
      return "filling";
    case v1::SegmentInfo::STATE_SEALED:
      return "sealed";
    case v1::SegmentInfo::STATE_UNUSED:
      return "unused";
    default:
      return "unknown";  // A newer daemon's.
  }
}

// 0 with a name: the kernel could not tell. 0 without one: not for our eyes.
std::string PidText(const v1::SessionInfo& session) {
  if (session.pid() != 0) return absl::StrCat(session.pid());
  return session.name().empty() ? "-" : "unknown";
}

std::string ChecksumText(const v1::SegmentInfo& segment) {
  if (!segment.has_checksum()) return "-";
  return absl::StrFormat("%016x%016x", segment.checksum().high(), segment.checksum().low());
}

}  // namespace

std::string RenderSessions(const v1::ListSessionsResponse& sessions, absl::Time now) {
  Table table({{"id"},
               {"name", Align::kLeft},
               {"uid"},
               {"pid"},
               {"age"},
               {"blocks"},
               {"bytes"},
               {"segments"}});
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  for (const v1::SessionInfo& session : sessions.sessions()) {
    table.AddRow({Number(session.session_id()),
                  absl::StrCat(NameOrDash(session.name()), session.observer() ? " (observer)" : ""),
                  Number(session.uid()), PidText(session),
                  FormatAge(now - ToTime(session.start_time())), Number(session.leased_blocks()),
                  Size(session.leased_bytes()), Number(session.attached_segments())});
    blocks += session.leased_blocks();
    bytes += session.leased_bytes();
  }
  const std::string total =
      absl::StrCat(Count(static_cast<uint64_t>(sessions.sessions_size()), "session"));
  if (sessions.sessions().empty()) return total + "\n";
  return absl::StrCat(table.Render(), total, ", ", Count(blocks, "block"), ", ", Size(bytes), "\n");
}

std::string RenderSegments(const v1::ListSegmentsResponse& segments) {
  Table table({{"id"},
               {"name", Align::kLeft},
               {"uid"},
               {"device"},
               {"state", Align::kLeft},
               {"size"},
               {"allocated"},
               {"blocks"},
               {"attached"},
               {"waiting"},
               {"checksum", Align::kLeft}});
  uint64_t bytes = 0;
  for (const v1::SegmentInfo& segment : segments.segments()) {
    table.AddRow({Number(segment.segment_id()), NameOrDash(segment.name()), Number(segment.uid()),
                  Number(segment.device_index()), StateName(segment.state()), Size(segment.size()),
                  Size(segment.allocated_bytes()), Number(segment.blocks()),
                  Number(segment.attached_sessions()), Number(segment.waiting_calls()),
                  ChecksumText(segment)});
    bytes += segment.allocated_bytes();
  }
  const std::string total = Count(static_cast<uint64_t>(segments.segments_size()), "segment");
  if (segments.segments().empty()) return total + "\n";
  return absl::StrCat(table.Render(), total, ", ", Size(bytes), " allocated\n");
}

std::string RenderHealth(const grpc::health::v1::HealthCheckResponse& health) {
  const std::string& name =
      grpc::health::v1::HealthCheckResponse::ServingStatus_Name(health.status());
  return (name.empty() ? "UNKNOWN" : name) + "\n";
}

std::string RenderLeases(const v1::ListLeasesResponse& leases, absl::Time now) {
  const bool only_opaque = std::all_of(
      leases.leases().begin(), leases.leases().end(),
      [](const v1::LeaseInfo& lease) { return lease.handle_type() == v1::HANDLE_TYPE_OPAQUE_FD; });
  Table table({{"block"},
               {"session"},
               {"uid"},
               {"device", Align::kRight, Show::kWhereUsed},
               {"handle", Align::kLeft, Show::kWhereUsed},
               {"pool", Align::kLeft},
               {"size"},
               {"allocated"},
               {"age"}});
  uint64_t bytes = 0;
  for (const v1::LeaseInfo& lease : leases.leases()) {
    table.AddRow({Number(lease.block_id()), Number(lease.session_id()), Number(lease.uid()),
                  Number(lease.device_index()),
                  only_opaque ? "" : HandleTypeName(lease.handle_type()), PoolCell(lease.pool()),
                  Size(lease.size()), Size(lease.allocated_bytes()),
                  FormatAge(now - ToTime(lease.start_time()))});
    bytes += lease.allocated_bytes();
  }
  const std::string total = Count(static_cast<uint64_t>(leases.leases_size()), "lease");
  if (leases.leases().empty()) return total + "\n";
  return absl::StrCat(table.Render(), total, ", ", Size(bytes), " allocated\n");
}

std::string RenderTrim(const v1::TrimResponse& trimmed) {
  if (trimmed.blocks() == 0) return "nothing to free\n";
  return absl::StrCat("freeing ", Count(trimmed.blocks(), "block"), ", ", Size(trimmed.bytes()),
                      "\n");
}

absl::StatusOr<std::string> RenderJson(const google::protobuf::Message& reply, JsonStyle style) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = style == JsonStyle::kIndented;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(reply, &json, options);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("cannot write the reply as JSON: ", status.ToString()));
  }
  return style == JsonStyle::kIndented ? json : json + "\n";
}

}  // namespace heapbroker

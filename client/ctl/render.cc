// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/render.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/table.h"
#include "common/base/text.h"
#include "heapbroker/units.h"

namespace heapbroker {
namespace {

using Align = Table::Align;

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

std::string Number(uint64_t value) { return absl::StrCat(value); }
std::string Size(uint64_t bytes) { return FormatBytes(Bytes(bytes)); }

// "1 session", "2 sessions".
std::string Count(uint64_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

std::string NameOrDash(const std::string& name) { return name.empty() ? "-" : Printable(name); }

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

absl::StatusOr<std::string> RenderJson(const google::protobuf::Message& reply) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(reply, &json, options);
  if (!status.ok()) {
    return absl::InternalError(absl::StrCat("cannot write the reply as JSON: ", status.ToString()));
  }
  return json;
}

std::string FormatAge(absl::Duration age) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(age), 0);
  const int64_t minutes = seconds / 60;
  const int64_t hours = minutes / 60;
  if (minutes == 0) return absl::StrCat(seconds, " s");
  if (hours == 0) return absl::StrCat(minutes, " min ", seconds % 60, " s");
  if (hours < 24) return absl::StrCat(hours, " h ", minutes % 60, " min");
  return absl::StrCat(hours / 24, " d ", hours % 24, " h");
}

std::string FormatRate(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f %%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace heapbroker

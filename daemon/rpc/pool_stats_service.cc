// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pool_stats_service.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "common/posix/descriptors.h"

namespace heapbroker {
namespace {

constexpr uint32_t kDefaultPageSize = 100;
constexpr uint32_t kMaxPageSize = 1000;

absl::StatusOr<size_t> PageSizeOf(uint32_t page_size) {
  if (page_size > kMaxPageSize) {
    return absl::InvalidArgumentError(absl::StrCat("page_size: is ", page_size,
                                                   "; allowed are 1 to ", kMaxPageSize,
                                                   ", or 0 for ", kDefaultPageSize));
  }
  return page_size == 0 ? kDefaultPageSize : page_size;
}

// A page's token is the last id on it: lists are ordered by id, and ids are not
// used again, so nothing is shown twice or left out because something ended.
absl::StatusOr<uint64_t> LastIdOf(const std::string& page_token) {
  if (page_token.empty()) return 0;
  uint64_t id = 0;
  if (!absl::SimpleAtoi(page_token, &id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token: \"", Printable(page_token),
                     "\" did not come from here; send next_page_token of the last reply"));
  }
  return id;
}

}  // namespace

PoolStatsService::PoolStatsService(const Sessions& sessions, const DeviceBroker& broker,
                                   PoolStatsOptions options)
    : sessions_(sessions), broker_(broker), options_(std::move(options)) {}

void PoolStatsService::GetStats(const Caller& caller, const v1::GetStatsRequest& /*request*/,
                                UnaryReply<v1::GetStatsResponse> reply) {
  reply.Finish(DoGetStats(caller));
}

absl::StatusOr<v1::GetStatsResponse> PoolStatsService::DoGetStats(const Caller& caller) {
  // Nothing here depends on who asks, but a token that has ended is told so.
  HB_RETURN_IF_ERROR(FindSession(sessions_, caller).status());
  v1::GetStatsResponse response;
  response.set_version(options_.version);
  *response.mutable_start_time() = TimestampMessage(options_.start_time);
  *response.add_devices() = DeviceStatsMessage(broker_.Stats());
  const Sessions::Counts counts = sessions_.Count();
  response.set_client_sessions(static_cast<uint32_t>(counts.clients));
  response.set_observer_sessions(static_cast<uint32_t>(counts.observers));
  response.set_open_descriptors(OpenDescriptorCount());
  response.set_max_descriptors(DescriptorLimit());
  return response;
}

void PoolStatsService::ListSessions(const Caller& caller, const v1::ListSessionsRequest& request,
                                    UnaryReply<v1::ListSessionsResponse> reply) {
  reply.Finish(DoListSessions(caller, request));
}

absl::StatusOr<v1::ListSessionsResponse> PoolStatsService::DoListSessions(
    const Caller& caller, const v1::ListSessionsRequest& request) {
  HB_ASSIGN_OR_RETURN(const std::optional<Session> viewer, FindSession(sessions_, caller));
  HB_ASSIGN_OR_RETURN(const size_t page_size, PageSizeOf(request.page_size()));
  HB_ASSIGN_OR_RETURN(const uint64_t last, LastIdOf(request.page_token()));
  // One more than fits tells whether there is another page.
  std::vector<Session> sessions =
      sessions_.List(SessionId(last), page_size + 1, request.include_observers());
  v1::ListSessionsResponse response;
  if (sessions.size() > page_size) {
    sessions.pop_back();
    response.set_next_page_token(absl::StrCat(sessions.back().id.value()));
  }
  for (const Session& session : sessions) {
    *response.add_sessions() =
        SessionMessage(session, broker_.Holdings(session.id), NamesFor(viewer, session.tenant()));
  }
  return response;
}

void PoolStatsService::ListSegments(const Caller& caller, const v1::ListSegmentsRequest& request,
                                    UnaryReply<v1::ListSegmentsResponse> reply) {
  reply.Finish(DoListSegments(caller, request));
}

absl::StatusOr<v1::ListSegmentsResponse> PoolStatsService::DoListSegments(
    const Caller& caller, const v1::ListSegmentsRequest& request) {
  HB_ASSIGN_OR_RETURN(const std::optional<Session> viewer, FindSession(sessions_, caller));
  HB_ASSIGN_OR_RETURN(const size_t page_size, PageSizeOf(request.page_size()));
  HB_ASSIGN_OR_RETURN(const uint64_t last, LastIdOf(request.page_token()));
  const std::vector<SegmentStats> segments = broker_.ListSegments();
  auto next = std::find_if(segments.begin(), segments.end(), [last](const SegmentStats& segment) {
    return segment.id > SegmentId(last);
  });
  v1::ListSegmentsResponse response;
  for (; next != segments.end(); ++next) {
    if (static_cast<size_t>(response.segments_size()) == page_size) {
      response.set_next_page_token(absl::StrCat(std::prev(next)->id.value()));
      break;
    }
    *response.add_segments() =
        SegmentMessage(*next, broker_.info().index, NamesFor(viewer, next->tenant));
  }
  return response;
}

Names PoolStatsService::NamesFor(const std::optional<Session>& viewer, TenantId owner) const {
  if (!viewer.has_value()) return Names::kHidden;
  const uint32_t uid = viewer->identity.uid;
  const bool administrator = uid == 0 || uid == options_.daemon_uid;
  return administrator || viewer->tenant() == owner ? Names::kShown : Names::kHidden;
}

}  // namespace heapbroker

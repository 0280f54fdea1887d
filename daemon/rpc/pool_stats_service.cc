// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pool_stats_service.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/descriptors.h"
#include "daemon/rpc/convert_time.h"
#include "daemon/rpc/pages.h"

namespace heapbroker {
namespace {

// More streams than any machine has people who look at it.
constexpr size_t kMaxWatchers = 256;
constexpr absl::Duration kMinInterval = absl::Milliseconds(100);
constexpr absl::Duration kMaxInterval = absl::Hours(1);

// All streams share a snapshot for half of the shortest interval, so that each beat
// still brings another one, and the devices are asked twenty times a second at most.
constexpr absl::Duration kSharedFor = absl::Milliseconds(50);
// On older kernels counting descriptors means listing them, which takes milliseconds
// where there are thousands.
constexpr absl::Duration kDescriptorsCountedFor = absl::Seconds(1);

}  // namespace

PoolStatsService::PoolStatsService(const Sessions& sessions, const Devices& devices,
                                   const Clock& clock, PoolStatsOptions options)
    : sessions_(sessions),
      devices_(devices),
      options_(std::move(options)),
      open_descriptors_(clock, kDescriptorsCountedFor, OpenDescriptorCount),
      streamed_(clock, kSharedFor, [this] { return SerializeToBuffer(Now()); }) {}

v1::GetStatsResponse PoolStatsService::Now() {
  v1::GetStatsResponse response;
  response.set_version(options_.version);
  *response.mutable_start_time() = TimestampMessage(options_.start_time);
  for (const DeviceBroker* device : devices_.all()) {
    *response.add_devices() = DeviceStatsMessage(device->Stats());
  }
  const Sessions::Counts counts = sessions_.Count();
  response.set_client_sessions(static_cast<uint32_t>(counts.clients));
  response.set_observer_sessions(static_cast<uint32_t>(counts.observers));
  response.set_open_descriptors(open_descriptors_.Get());
  response.set_max_descriptors(DescriptorLimit());
  return response;
}

void PoolStatsService::GetStats(const Caller& caller, const v1::GetStatsRequest& /*request*/,
                                UnaryReply<v1::GetStatsResponse> reply) {
  // Nothing here depends on who asks, but a token that has ended is told so.
  if (const auto viewer = FindSession(sessions_, caller); !viewer.ok()) {
    return reply.Finish(viewer.status());
  }
  reply.Finish(Now());
}

absl::StatusOr<absl::Duration> PoolStatsService::CheckWatch(
    const Caller& caller, const v1::WatchStatsRequest& request) const {
  HB_RETURN_IF_ERROR(FindSession(sessions_, caller).status());
  HB_ASSIGN_OR_RETURN(const absl::Duration interval, DurationOf(request.interval(), "interval"));
  if (interval >= kMinInterval && interval <= kMaxInterval) return interval;
  return absl::InvalidArgumentError(
      absl::StrCat("interval: is ", absl::FormatDuration(interval), "; allowed are 100 ms to 1 h"));
}

void PoolStatsService::WatchStats(const Caller& caller, const v1::WatchStatsRequest& request,
                                  StreamReply<v1::GetStatsResponse> reply, Beats& beats) {
  const absl::StatusOr<absl::Duration> interval = CheckWatch(caller, request);
  if (!interval.ok()) return reply.Finish(interval.status());
  if (!TakeWatcher()) {
    return reply.Finish(absl::ResourceExhaustedError(
        absl::StrCat("the daemon has ", kMaxWatchers,
                     " streams of WatchStats, and no more; end one, or call GetStats")));
  }
  reply.SetSharedSource([this] { return streamed_.Get(); });
  reply.Changed();
  const uint64_t beat = beats.Add(*interval, [reply] { reply.Changed(); });
  reply.OnCancelled([this, &beats, beat] {
    beats.Remove(beat);
    MutexLock lock(mutex_);
    --watchers_;
  });
}

bool PoolStatsService::TakeWatcher() {
  MutexLock lock(mutex_);
  if (watchers_ == kMaxWatchers) return false;
  ++watchers_;
  return true;
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
        SessionMessage(session, HoldingsOf(session.id), NamesFor(viewer, session.tenant()));
  }
  return response;
}

HolderStats PoolStatsService::HoldingsOf(SessionId session) const {
  HolderStats sum;
  for (const DeviceBroker* device : devices_.all()) {
    const HolderStats there = device->Holdings(session);
    sum.leased_blocks += there.leased_blocks;
    sum.leased_bytes += there.leased_bytes;
    sum.attached_segments += there.attached_segments;
  }
  return sum;
}

void PoolStatsService::ListLeases(const Caller& caller, const v1::ListLeasesRequest& request,
                                  UnaryReply<v1::ListLeasesResponse> reply) {
  reply.Finish(DoListLeases(caller, request));
}

absl::StatusOr<v1::ListLeasesResponse> PoolStatsService::DoListLeases(
    const Caller& caller, const v1::ListLeasesRequest& request) {
  HB_RETURN_IF_ERROR(FindSession(sessions_, caller).status());
  HB_ASSIGN_OR_RETURN(const size_t page_size, PageSizeOf(request.page_size()));
  HB_ASSIGN_OR_RETURN(const uint64_t last, LastIdOf(request.page_token()));
  if (last != 0 && devices_.Of(BlockId(last)) == nullptr) return ForeignToken(request.page_token());
  LeasePage page(page_size, SessionId(request.session_id()));
  for (size_t device = DeviceIndexOf(BlockId(last)); device < devices_.all().size(); ++device) {
    const bool resumed = last != 0 && device == DeviceIndexOf(BlockId(last));
    if (!page.AddFrom(*devices_.all()[device], resumed ? BlockId(last) : BlockId())) break;
  }
  return page.Take();
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
  std::vector<SegmentStats> segments;
  // Ids of several devices alternate, so the page may be of any of them alone; one more
  // than fits tells whether there is another page.
  for (const DeviceBroker* device : devices_.all()) {
    for (SegmentStats& segment : device->ListSegments(SegmentId(last), page_size + 1)) {
      segments.push_back(std::move(segment));
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentStats& a, const SegmentStats& b) { return a.id < b.id; });
  v1::ListSegmentsResponse response;
  if (segments.size() > page_size) {
    segments.erase(segments.begin() + page_size, segments.end());
    response.set_next_page_token(absl::StrCat(segments.back().id.value()));
  }
  for (const SegmentStats& segment : segments) {
    *response.add_segments() =
        SegmentMessage(segment, DeviceIndexOf(segment.id), NamesFor(viewer, segment.tenant));
  }
  return response;
}

Names PoolStatsService::NamesFor(const std::optional<Session>& viewer, TenantId owner) const {
  if (!viewer.has_value()) return Names::kHidden;
  const bool shown = IsAdministrator(*viewer, options_.daemon_uid) || viewer->tenant() == owner;
  return shown ? Names::kShown : Names::kHidden;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/queries.h"

#include <cstdint>
#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

// The largest that the protocol allows: the fewest calls.
constexpr uint32_t kPageSize = 1000;

// A page with nothing on it that promises another would go on for ever.
absl::Status EndlessPages() {
  return absl::InternalError("the daemon sent an empty page and says that more follow");
}

}  // namespace

absl::StatusOr<Queries> Queries::Connect(const std::string& runtime_dir) {
  HB_ASSIGN_OR_RETURN(
      std::shared_ptr<Connection> connection,
      Connection::Connect({.name = "heapbrokerctl", .runtime_dir = runtime_dir, .observer = true}));
  return Queries(std::move(connection));
}

Queries::Queries(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)),
      admin_(v1::Admin::NewStub(connection_->channel())),
      stats_(v1::PoolStats::NewStub(connection_->channel())),
      health_(grpc::health::v1::Health::NewStub(connection_->channel())) {}

absl::Status Queries::Outcome(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) return Connection::Translate(status);
  return absl::UnimplementedError(
      "the daemon does not know this command: it is older than heapbrokerctl; update it");
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Queries::Ask(Stub& stub,
                                      grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                                      const Request& request) {
  grpc::ClientContext context;
  connection_->Prepare(context, connection_->call_timeout());
  Response response;
  HB_RETURN_IF_ERROR(Outcome((stub.*method)(&context, request, &response)));
  return response;
}

absl::StatusOr<v1::GetStatsResponse> Queries::Stats() {
  return Ask(*stats_, &v1::PoolStats::Stub::GetStats, v1::GetStatsRequest());
}

absl::Status Queries::WatchStats(
    absl::Duration interval, const std::function<absl::Status(const v1::GetStatsResponse&)>& show) {
  grpc::ClientContext context;
  connection_->Prepare(context, absl::InfiniteDuration());
  v1::WatchStatsRequest request;
  request.mutable_interval()->set_seconds(
      absl::IDivDuration(interval, absl::Seconds(1), &interval));
  request.mutable_interval()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(interval)));
  const std::unique_ptr<grpc::ClientReader<v1::GetStatsResponse>> replies =
      stats_->WatchStats(&context, request);
  v1::GetStatsResponse reply;
  absl::Status shown;
  while (shown.ok() && replies->Read(&reply)) shown = show(reply);
  if (!shown.ok()) context.TryCancel();
  const grpc::Status status = replies->Finish();
  if (!shown.ok()) return shown;
  HB_RETURN_IF_ERROR(Outcome(status));
  return absl::UnavailableError("the daemon stopped showing its statistics; ask again");
}

absl::StatusOr<v1::ListSessionsResponse> Queries::Sessions(Observers observers) {
  v1::ListSessionsRequest request;
  request.set_include_observers(observers == Observers::kShown);
  request.set_page_size(kPageSize);
  v1::ListSessionsResponse all;
  do {
    HB_ASSIGN_OR_RETURN(v1::ListSessionsResponse page,
                        Ask(*stats_, &v1::PoolStats::Stub::ListSessions, request));
    request.set_page_token(page.next_page_token());
    if (page.sessions().empty() && !request.page_token().empty()) return EndlessPages();
    all.mutable_sessions()->MergeFrom(page.sessions());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::ListSegmentsResponse> Queries::Segments() {
  v1::ListSegmentsRequest request;
  request.set_page_size(kPageSize);
  v1::ListSegmentsResponse all;
  do {
    HB_ASSIGN_OR_RETURN(v1::ListSegmentsResponse page,
                        Ask(*stats_, &v1::PoolStats::Stub::ListSegments, request));
    request.set_page_token(page.next_page_token());
    if (page.segments().empty() && !request.page_token().empty()) return EndlessPages();
    all.mutable_segments()->MergeFrom(page.segments());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::ListLeasesResponse> Queries::Leases(uint64_t session_id) {
  v1::ListLeasesRequest request;
  request.set_page_size(kPageSize);
  request.set_session_id(session_id);
  v1::ListLeasesResponse all;
  do {
    HB_ASSIGN_OR_RETURN(v1::ListLeasesResponse page,
                        Ask(*stats_, &v1::PoolStats::Stub::ListLeases, request));
    request.set_page_token(page.next_page_token());
    if (page.leases().empty() && !request.page_token().empty()) return EndlessPages();
    all.mutable_leases()->MergeFrom(page.leases());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::TrimResponse> Queries::Trim(const v1::TrimRequest& request) {
  absl::StatusOr<v1::TrimResponse> trimmed = Ask(*admin_, &v1::Admin::Stub::Trim, request);
  // NOT_FOUND is for a daemon that is not there; what was wrong is the argument.
  if (absl::IsNotFound(trimmed.status())) {
    return absl::InvalidArgumentError(trimmed.status().message());
  }
  return trimmed;
}

absl::StatusOr<grpc::health::v1::HealthCheckResponse> Queries::Health() {
  return Ask(*health_, &grpc::health::v1::Health::Stub::Check,
             grpc::health::v1::HealthCheckRequest());
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The questions that heapbrokerctl puts to the daemon.
#ifndef CLIENT_CTL_QUERIES_H_
#define CLIENT_CTL_QUERIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/transport/connection.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "heapbroker/v1/admin.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"

namespace heapbroker {

// An observer's session, so that the daemon knows whose names it may show.
// Errors of all: see Connection::Translate; INTERNAL where the daemon's pages make
// no sense; UNIMPLEMENTED where the daemon is too old. Not thread-safe.
class Queries {
 public:
  // `runtime_dir` as in ClientOptions.
  static absl::StatusOr<Queries> Connect(const std::string& runtime_dir);

  absl::StatusOr<v1::GetStatsResponse> Stats();
  // At once and again at every interval. Ends with the error of `show`, or the
  // daemon's, and never with OK.
  absl::Status WatchStats(absl::Duration interval,
                          const std::function<absl::Status(const v1::GetStatsResponse&)>& show);
  // All pages, joined in one reply.
  enum class Observers { kHidden, kShown };
  absl::StatusOr<v1::ListSessionsResponse> Sessions(Observers observers);
  absl::StatusOr<v1::ListSegmentsResponse> Segments();
  // Of this session only, unless it is 0.
  absl::StatusOr<v1::ListLeasesResponse> Leases(uint64_t session_id);
  //   INVALID_ARGUMENT   there is no such pool or device
  //   PERMISSION_DENIED  for root and the daemon's own user only
  absl::StatusOr<v1::TrimResponse> Trim(const v1::TrimRequest& request);
  // Of the daemon as a whole.
  absl::StatusOr<grpc::health::v1::HealthCheckResponse> Health();

 private:
  explicit Queries(std::shared_ptr<Connection> connection);

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Ask(Stub& stub,
                               grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                               const Request& request);

  // Translates the end of a call.
  static absl::Status Outcome(const grpc::Status& status);

  std::shared_ptr<Connection> connection_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::PoolStats::Stub> stats_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace heapbroker
#endif  // CLIENT_CTL_QUERIES_H_

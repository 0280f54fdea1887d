// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The questions that heapbrokerctl puts to the daemon.
#ifndef CLIENT_CTL_QUERIES_H_
#define CLIENT_CTL_QUERIES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/transport/connection.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"

namespace heapbroker {

// An observer's session, so that the daemon knows whose names it may show.
// Errors of all: see Connection::Translate; and INTERNAL where the daemon's
// pages make no sense. Not thread-safe.
class Queries {
 public:
  // `runtime_dir` as in ClientOptions.
  static absl::StatusOr<Queries> Connect(const std::string& runtime_dir);

  absl::StatusOr<v1::GetStatsResponse> Stats();
  // All pages, joined in one reply.
  enum class Observers { kHidden, kShown };
  absl::StatusOr<v1::ListSessionsResponse> Sessions(Observers observers);
  absl::StatusOr<v1::ListSegmentsResponse> Segments();
  // Of the daemon as a whole.
  absl::StatusOr<grpc::health::v1::HealthCheckResponse> Health();

 private:
  explicit Queries(std::shared_ptr<Connection> connection);

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Ask(Stub& stub,
                               grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                               const Request& request);

  std::shared_ptr<Connection> connection_;
  std::unique_ptr<v1::PoolStats::Stub> stats_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace heapbroker
#endif  // CLIENT_CTL_QUERIES_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What heapbrokerctl asks of a daemon, answered inside the test.
#ifndef TESTS_UNIT_CTL_FAKE_SERVICES_H_
#define TESTS_UNIT_CTL_FAKE_SERVICES_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "grpcpp/server.h"
#include "heapbroker/v1/admin.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/client/fake_session_socket.h"

namespace heapbroker {

// Both sockets of a daemon. Takes no call without the session's token. Thread-safe.
class FakeServices : private v1::PoolStats::Service, private v1::Admin::Service {
 public:
  // kOld: one that knows nothing of administration.
  enum class Age { kNew, kOld };
  explicit FakeServices(Age age = Age::kNew);
  ~FakeServices() override;

  const std::string& runtime_dir() const { return dir_.path(); }

  // What Trim answers.
  void AnswerTrimWith(const grpc::Status& status, const v1::TrimResponse& response);
  std::vector<v1::TrimRequest> trims() const;
  // Leases of session 1, in pages of two, however many are asked for.
  void SetLeases(int count);
  std::vector<v1::ListLeasesRequest> lease_requests() const;
  // Replies of WatchStats before it ends by itself; each has another version.
  void SetWatchReplies(int count);
  std::vector<v1::WatchStatsRequest> watch_requests() const;

 private:
  grpc::Status Trim(grpc::ServerContext* context, const v1::TrimRequest* request,
                    v1::TrimResponse* response) override;
  grpc::Status GetStats(grpc::ServerContext* context, const v1::GetStatsRequest* request,
                        v1::GetStatsResponse* response) override;
  grpc::Status WatchStats(grpc::ServerContext* context, const v1::WatchStatsRequest* request,
                          grpc::ServerWriter<v1::GetStatsResponse>* writer) override;
  grpc::Status ListLeases(grpc::ServerContext* context, const v1::ListLeasesRequest* request,
                          v1::ListLeasesResponse* response) override;

  const TempDir dir_;
  mutable Mutex mutex_;
  grpc::Status trim_status_ ABSL_GUARDED_BY(mutex_);
  v1::TrimResponse trim_response_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::TrimRequest> trims_ ABSL_GUARDED_BY(mutex_);
  int leases_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::ListLeasesRequest> lease_requests_ ABSL_GUARDED_BY(mutex_);
  int watch_replies_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::WatchStatsRequest> watch_requests_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FakeSessionSocket> session_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CTL_FAKE_SERVICES_H_

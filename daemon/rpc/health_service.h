// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// grpc.health.v1.Health. gRPC's own is served by its callback threads, which
// slow every other call down.
#ifndef DAEMON_RPC_HEALTH_SERVICE_H_
#define DAEMON_RPC_HEALTH_SERVICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/mutex.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "grpc/health/v1/health.pb.h"

namespace heapbroker {

enum class Health { kServing, kNotServing };

// Knows "" (the daemon as a whole) and the services of heapbroker.v1; all are
// kNotServing at first, and have one status together. Thread-safe.
class HealthService {
 public:
  // Tells those who watch.
  void SetHealth(Health health);

  //   NOT_FOUND  a service that is not here
  void Check(const Caller& caller, const grpc::health::v1::HealthCheckRequest& request,
             UnaryReply<grpc::health::v1::HealthCheckResponse> reply);
  // A service that is not here is SERVICE_UNKNOWN, and stays so.
  //   RESOURCE_EXHAUSTED  there are as many streams as there may be
  void Watch(const Caller& caller, const grpc::health::v1::HealthCheckRequest& request,
             StreamReply<grpc::health::v1::HealthCheckResponse> reply);

 private:
  using Watcher = StreamReply<grpc::health::v1::HealthCheckResponse>;

  grpc::health::v1::HealthCheckResponse Now(bool known) const;
  // The number of one more stream; empty where there are as many as there may be.
  // `watcher` is told of changes, where it is set.
  std::optional<uint64_t> AddWatcher(std::optional<Watcher> watcher);

  mutable Mutex mutex_;
  Health health_ ABSL_GUARDED_BY(mutex_) = Health::kNotServing;
  uint64_t last_watcher_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::optional<Watcher>> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_HEALTH_SERVICE_H_

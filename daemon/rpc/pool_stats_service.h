// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbroker.v1.PoolStats: who holds what.
#ifndef DAEMON_RPC_POOL_STATS_SERVICE_H_
#define DAEMON_RPC_POOL_STATS_SERVICE_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/convert_stats.h"
#include "daemon/rpc/unary_call.h"
#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

struct PoolStatsOptions {
  std::string version;
  absl::Time start_time;
  // The daemon's own user, who may see every name, as root may.
  uid_t daemon_uid = 0;
};

// Thread-safe. GetStats reads the process's descriptor table; nothing else makes
// a system call, and nothing blocks.
class PoolStatsService {
 public:
  // Both must outlive the service.
  PoolStatsService(const Sessions& sessions, const DeviceBroker& broker, PoolStatsOptions options);

  void GetStats(const Caller& caller, const v1::GetStatsRequest& request,
                UnaryReply<v1::GetStatsResponse> reply);
  void ListSessions(const Caller& caller, const v1::ListSessionsRequest& request,
                    UnaryReply<v1::ListSessionsResponse> reply);
  void ListSegments(const Caller& caller, const v1::ListSegmentsRequest& request,
                    UnaryReply<v1::ListSegmentsResponse> reply);

 private:
  absl::StatusOr<v1::GetStatsResponse> DoGetStats(const Caller& caller);
  absl::StatusOr<v1::ListSessionsResponse> DoListSessions(const Caller& caller,
                                                          const v1::ListSessionsRequest& request);
  absl::StatusOr<v1::ListSegmentsResponse> DoListSegments(const Caller& caller,
                                                          const v1::ListSegmentsRequest& request);

  // What `viewer` may see of `owner`.
  Names NamesFor(const std::optional<Session>& viewer, TenantId owner) const;

  const Sessions& sessions_;
  const DeviceBroker& broker_;
  const PoolStatsOptions options_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_POOL_STATS_SERVICE_H_

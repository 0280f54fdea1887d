// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbroker.v1.PoolStats: who holds what.
#ifndef DAEMON_RPC_POOL_STATS_SERVICE_H_
#define DAEMON_RPC_POOL_STATS_SERVICE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "daemon/core/devices.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/beats.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/convert_stats.h"
#include "daemon/rpc/recent_value.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

struct PoolStatsOptions {
  std::string version;
  absl::Time start_time;
  // The daemon's own user, who may see every name, as root may.
  uid_t daemon_uid = 0;
};

// Thread-safe. GetStats and WatchStats read the process's descriptor table, once a
// second at most; nothing else makes a system call, and nothing blocks.
class PoolStatsService {
 public:
  // All must outlive the service.
  PoolStatsService(const Sessions& sessions, const Devices& devices, const Clock& clock,
                   PoolStatsOptions options);

  void GetStats(const Caller& caller, const v1::GetStatsRequest& request,
                UnaryReply<v1::GetStatsResponse> reply);
  // `beats` is the server's, and outlives the call. A client that reads slowly
  // misses what was true meanwhile. What all streams cost together does not grow with
  // their number: they are sent one snapshot, for 50 ms.
  void WatchStats(const Caller& caller, const v1::WatchStatsRequest& request,
                  StreamReply<v1::GetStatsResponse> reply, Beats& beats);
  void ListSessions(const Caller& caller, const v1::ListSessionsRequest& request,
                    UnaryReply<v1::ListSessionsResponse> reply);
  // A page may be short, or empty, before the last one: what one call looks through
  // for one session's leases is bounded.
  void ListLeases(const Caller& caller, const v1::ListLeasesRequest& request,
                  UnaryReply<v1::ListLeasesResponse> reply);
  void ListSegments(const Caller& caller, const v1::ListSegmentsRequest& request,
                    UnaryReply<v1::ListSegmentsResponse> reply);

 private:
  v1::GetStatsResponse Now();
  absl::StatusOr<absl::Duration> CheckWatch(const Caller& caller,
                                            const v1::WatchStatsRequest& request) const;
  absl::StatusOr<v1::ListSessionsResponse> DoListSessions(const Caller& caller,
                                                          const v1::ListSessionsRequest& request);
  absl::StatusOr<v1::ListLeasesResponse> DoListLeases(const Caller& caller,
                                                      const v1::ListLeasesRequest& request);
  absl::StatusOr<v1::ListSegmentsResponse> DoListSegments(const Caller& caller,
                                                          const v1::ListSegmentsRequest& request);

  HolderStats HoldingsOf(SessionId session) const;
  // Counts one more stream, if there may be one.
  bool TakeWatcher();

  // What `viewer` may see of `owner`.
  Names NamesFor(const std::optional<Session>& viewer, TenantId owner) const;

  const Sessions& sessions_;
  const Devices& devices_;
  const PoolStatsOptions options_;
  RecentValue<uint64_t> open_descriptors_;
  RecentValue<grpc::ByteBuffer> streamed_;  // GetStatsResponse.

  // Streams of WatchStats that are open, of all servers together.
  Mutex mutex_;
  size_t watchers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_POOL_STATS_SERVICE_H_

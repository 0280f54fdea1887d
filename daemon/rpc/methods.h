// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Every method that is served: gRPC's side of it, and the handler.
#ifndef DAEMON_RPC_METHODS_H_
#define DAEMON_RPC_METHODS_H_

#include <vector>

#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/beats.h"
#include "daemon/rpc/bidi_call.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/live_calls.h"
#include "daemon/rpc/memory_broker_service.h"
#include "daemon/rpc/pool_stats_service.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_builder.h"
#include "heapbroker/v1/admin.grpc.pb.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"

namespace heapbroker {

// Ties the generated services to ours. All methods are raw: gRPC hands over the
// request's bytes and does not parse them, since what it cannot parse it answers
// with INTERNAL, not with the name of the field that is wrong.
class RpcMethods {
 public:
  RpcMethods(MemoryBrokerService& memory, PoolStatsService& stats, AdminService& admin,
             HealthService& health);

  void Register(grpc::ServerBuilder& builder);

  // Asks `queue` for calls of every method, until `live` is closed. `beats` is for
  // those that go by the time.
  void ExpectCalls(grpc::ServerCompletionQueue& queue, LiveCalls& live, Beats& beats);

 private:
  template <typename Base>
  using RawMemory = v1::MemoryBroker::WithRawMethod_Allocate<
      v1::MemoryBroker::WithRawMethod_Release<v1::MemoryBroker::WithRawMethod_OpenSegment<
          v1::MemoryBroker::WithRawMethod_SealSegment<v1::MemoryBroker::WithRawMethod_CloseSegment<
              v1::MemoryBroker::WithRawMethod_Watch<Base>>>>>>;
  template <typename Base>
  using RawStats = v1::PoolStats::WithRawMethod_GetStats<v1::PoolStats::WithRawMethod_WatchStats<
      v1::PoolStats::WithRawMethod_ListSessions<v1::PoolStats::WithRawMethod_ListLeases<
          v1::PoolStats::WithRawMethod_ListSegments<Base>>>>>;
  template <typename Base>
  using RawAdmin = v1::Admin::WithRawMethod_Trim<Base>;
  template <typename Base>
  using RawHealth = grpc::health::v1::Health::WithRawMethod_Check<
      grpc::health::v1::Health::WithRawMethod_Watch<Base>>;

  void BindMemory(grpc::ServerCompletionQueue& queue);
  void BindStats(grpc::ServerCompletionQueue& queue, Beats& beats);
  void BindAdmin(grpc::ServerCompletionQueue& queue);
  void BindHealth(grpc::ServerCompletionQueue& queue);

  MemoryBrokerService& memory_;
  PoolStatsService& stats_;
  AdminService& admin_;
  HealthService& health_;
  RawMemory<v1::MemoryBroker::Service> memory_stub_;
  RawStats<v1::PoolStats::Service> stats_stub_;
  RawAdmin<v1::Admin::Service> admin_stub_;
  RawHealth<grpc::health::v1::Health::Service> health_stub_;
  // Calls refer to these, so they stay where they are once calls are expected.
  std::vector<UnaryMethod> unary_;
  std::vector<StreamMethod> streams_;
  std::vector<BidiMethod> bidi_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_METHODS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Every method that is served: gRPC's side of it, and the handler.
#ifndef DAEMON_RPC_METHODS_H_
#define DAEMON_RPC_METHODS_H_

#include <vector>

#include "daemon/rpc/health_service.h"
#include "daemon/rpc/live_calls.h"
#include "daemon/rpc/memory_broker_service.h"
#include "daemon/rpc/pool_stats_service.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_builder.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"

namespace heapbroker {

// Ties the generated services to ours. All methods are raw: gRPC hands over the
// request's bytes and does not parse them, since what it cannot parse it answers
// with INTERNAL, not with the name of the field that is wrong.
class RpcMethods {
 public:
  RpcMethods(MemoryBrokerService& memory, PoolStatsService& stats, HealthService& health);

  void Register(grpc::ServerBuilder& builder);

  // Asks `queue` for calls of every method, until `live` is closed.
  void ExpectCalls(grpc::ServerCompletionQueue& queue, LiveCalls& live);

 private:
  template <typename Base>
  using RawMemory =
      v1::MemoryBroker::WithRawMethod_Allocate<v1::MemoryBroker::WithRawMethod_Release<
          v1::MemoryBroker::WithRawMethod_OpenSegment<v1::MemoryBroker::WithRawMethod_SealSegment<
              v1::MemoryBroker::WithRawMethod_CloseSegment<Base>>>>>;
  template <typename Base>
  using RawStats = v1::PoolStats::WithRawMethod_GetStats<
      v1::PoolStats::WithRawMethod_ListSessions<v1::PoolStats::WithRawMethod_ListSegments<Base>>>;
  template <typename Base>
  using RawHealth = grpc::health::v1::Health::WithRawMethod_Check<
      grpc::health::v1::Health::WithRawMethod_Watch<Base>>;

  void BindMemory(grpc::ServerCompletionQueue& queue);
  void BindStats(grpc::ServerCompletionQueue& queue);
  void BindHealth(grpc::ServerCompletionQueue& queue);

  MemoryBrokerService& memory_;
  PoolStatsService& stats_;
  HealthService& health_;
  RawMemory<v1::MemoryBroker::Service> memory_stub_;
  RawStats<v1::PoolStats::Service> stats_stub_;
  RawHealth<grpc::health::v1::Health::Service> health_stub_;
  // Calls refer to these, so they stay where they are once calls are expected.
  std::vector<UnaryMethod> unary_;
  std::vector<StreamMethod> streams_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_METHODS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The gRPC edge of the daemon: broker.sock.
#ifndef DAEMON_RPC_SERVER_H_
#define DAEMON_RPC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/administrators.h"
#include "daemon/core/sessions.h"
#include "daemon/messages/limits.h"
#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/beats.h"
#include "daemon/rpc/connection_acceptor.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/live_calls.h"
#include "daemon/rpc/memory_broker_service.h"
#include "daemon/rpc/pool_stats_service.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "heapbroker/units.h"

namespace heapbroker {

class RpcMethods;

struct RpcServerOptions {
  // Threads in the completion queue. They do the sockets' input and output as
  // well, so nothing that they run may wait.
  int threads = 2;
  // A connection that has not spoken HTTP/2 by then is closed.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // Calls of one connection at a time; a client's further ones wait in it. gRPC holds
  // only clients to it that acknowledge their connection's settings.
  int max_calls_per_connection = 256;
  // Calls in all; what comes beyond is refused.
  CallLimits max_calls;
  // What connections, and requests that have not arrived in full, may take; where that
  // is not enough, gRPC closes connections that nobody uses, and then ends calls, of
  // any client, until it is.
  Bytes max_memory = MiB(128);
  Administrators administrators;
  // Connections in all; what comes beyond is closed at once. Each takes two
  // descriptors, so where these are few the bound has to be lower.
  size_t max_connections = 1024;
  // As many more for administrators.
  size_t reserved_connections = 8;
};

// What is served. All must outlive the server.
struct RpcServices {
  MemoryBrokerService& memory;
  PoolStatsService& stats;
  AdminService& admin;
  HealthService& health;
  // Whom the calls are from.
  const Sessions& sessions;
};

// Serves from Start() until Shutdown(). Every method is on the completion queue:
// synchronous ones tie a thread to each waiting client, and the threads of the
// callback API sleep 100 ms after an idle second.
class RpcServer {
 public:
  // `listener` is a listening, non-blocking stream socket.
  //   RESOURCE_EXHAUSTED, INTERNAL  what the kernel or gRPC said
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(UniqueFd listener,
                                                          const RpcServices& services,
                                                          const RpcServerOptions& options);

  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;
  // As Shutdown().
  ~RpcServer();

  // Ends all calls with UNAVAILABLE and all connections, and returns when no
  // thread of the server is left: normally within some milliseconds, and within
  // a second whatever its peers do. Services may still hold replies then; these
  // lead nowhere, and what is granted to them is undone. Not for one of the
  // queue's own threads; calling it twice is harmless, at once is not.
  void Shutdown();

  // Open connections. Thread-safe.
  size_t connections() const;
  // Connections that were closed at once because there were too many. Thread-safe.
  uint64_t refused_connections() const;

 private:
  RpcServer(const Sessions& sessions, const RpcServerOptions& options);

  void RunQueue();

  LiveCalls live_;
  std::unique_ptr<RpcMethods> methods_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<Beats> beats_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> external_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::vector<std::thread> threads_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_SERVER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/server.h"

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/queue_event.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace heapbroker {
namespace {

// How long clients that read get to see how their calls ended.
constexpr std::chrono::milliseconds kGoodbyeTime(200);
// How long gRPC gets to notice that its connections are gone.
constexpr std::chrono::milliseconds kGrpcShutdownTime(300);

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(UniqueFd listener,
                                                            const RpcServices& services,
                                                            const RpcServerOptions& options) {
  std::unique_ptr<RpcServer> self(new RpcServer(services.sessions, options));
  self->methods_ = std::make_unique<RpcMethods>(services.memory, services.stats, services.admin,
                                                services.health);
  grpc::ServerBuilder builder;
  self->methods_->Register(builder);
  self->queue_ = builder.AddCompletionQueue();
  self->external_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxRequestBytes));
  builder.AddChannelArgument(
      GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
      static_cast<int>(absl::ToInt64Milliseconds(options.handshake_timeout)));
  // 64 KiB can unpack to a thousand times that, in the queue's threads: nothing is
  // unpacked, and who sends it is told so.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_calls_per_connection);
  // The one bound on what a client can make gRPC keep that never lets a call arrive.
  builder.SetResourceQuota(
      grpc::ResourceQuota("heapbroker").Resize(static_cast<size_t>(options.max_memory.count())));
  self->server_ = builder.BuildAndStart();
  if (self->server_ == nullptr) return absl::InternalError("gRPC could not start a server");

  self->beats_ = std::make_unique<Beats>(*self->queue_);
  self->methods_->ExpectCalls(*self->queue_, self->live_, *self->beats_);
  for (int i = 0; i < options.threads; ++i) {
    self->threads_.emplace_back([raw = self.get()] { raw->RunQueue(); });
  }
  // Last: gRPC loses a connection that comes before it has started.
  HB_ASSIGN_OR_RETURN(
      self->acceptor_,
      ConnectionAcceptor::Start(
          std::move(listener),
          {options.max_connections, options.reserved_connections, options.administrators},
          [raw = self.get()](UniqueFd connection) {
            grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
            parameters.fd = connection.Release();
            raw->external_->HandleNewConnection(&parameters);
          }));
  return self;
}

RpcServer::RpcServer(const Sessions& sessions, const RpcServerOptions& options)
    : live_(options.max_calls,
            [&sessions, administrators = options.administrators](const Caller& caller) {
              return StandingOf(sessions, caller, administrators);
            }) {}

RpcServer::~RpcServer() { Shutdown(); }

void RpcServer::RunQueue() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<QueueEvent*>(tag)->Complete(ok);
}

// The order matters in each step: gRPC leaks a connection that is handed to it
// after its shutdown, aborts the process when a closed queue is asked for a call,
// waits for streams that nobody ends, and waits without limit for a peer that
// has stopped reading.
void RpcServer::Shutdown() {
  if (server_ == nullptr) return;
  if (acceptor_ != nullptr) acceptor_->Stop();
  live_.Close();
  const auto goodbye = std::chrono::steady_clock::now() + kGoodbyeTime;
  for (const std::shared_ptr<Call>& call : live_.Arrived()) {
    // Telling each costs a system call. Those that are left end with their connections.
    if (std::chrono::steady_clock::now() >= goodbye) break;
    call->Abort(ShuttingDown());
  }
  live_.WaitUntilNoneArrived(goodbye);
  if (acceptor_ != nullptr) acceptor_->ShutDownConnections();
  server_->Shutdown(std::chrono::system_clock::now() + kGrpcShutdownTime);
  live_.WaitUntilEmpty();
  if (beats_ != nullptr) beats_->Close();
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // Empties the queue where there never was a thread.
  RunQueue();
  threads_.clear();
  beats_.reset();
  server_.reset();
  external_.reset();
  queue_.reset();
}

size_t RpcServer::connections() const { return acceptor_->connections(); }

uint64_t RpcServer::refused_connections() const { return acceptor_->refused(); }

}  // namespace heapbroker

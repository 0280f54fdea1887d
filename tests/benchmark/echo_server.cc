// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The least that a server can do, to compare the daemon with:
//
//     benchmark_echo_server DIRECTORY
//
// DIRECTORY/echo.sock answers MemoryBroker.Allocate, one fixed block whatever was
// asked: the daemon's messages, on the completion queue, with the daemon's number
// of threads, and nothing else that the daemon does. DIRECTORY/packets.sock sends
// each packet back; one that begins with 'd' comes back with a descriptor. Serves
// until it is killed.
#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/posix/packet.h"
#include "common/posix/posix_error.h"
#include "common/posix/unix_socket.h"
#include "daemon/rpc/server.h"
#include "grpcpp/grpcpp.h"
#include "heapbroker/v1/broker.grpc.pb.h"

namespace heapbroker {
namespace {

using EchoService = v1::MemoryBroker::WithAsyncMethod_Allocate<v1::MemoryBroker::Service>;

// What the daemon answers to a request for 1 MiB, but for the ids.
v1::AllocateResponse FixedAnswer() {
  v1::AllocateResponse response;
  v1::Block& block = *response.add_blocks();
  block.set_block_id(1);
  block.set_size(1 << 20);
  block.set_allocation_size(1 << 20);
  block.set_memory_property_flags(0xF);
  block.set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
  return response;
}

// Waits for a call, answers it, and goes.
class EchoCall {
 public:
  static void Expect(EchoService& service, grpc::ServerCompletionQueue& queue) {
    auto* call = new EchoCall(service, queue);
    service.RequestAllocate(&call->context_, &call->request_, &call->writer_, &queue, &queue, call);
  }

  // `ok` is false for a call that never came: the server shuts down.
  void Proceed(bool ok) {
    if (answered_ || !ok) {
      delete this;
      return;
    }
    answered_ = true;
    Expect(service_, queue_);
    writer_.Finish(FixedAnswer(), grpc::Status::OK, this);
  }

 private:
  EchoCall(EchoService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue), writer_(&context_) {}

  EchoService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  v1::AllocateRequest request_;
  grpc::ServerAsyncResponseWriter<v1::AllocateResponse> writer_;
  bool answered_ = false;
};

absl::Status MakeBlocking(const UniqueFd& socket) {
  if (fcntl(socket.get(), F_SETFL, 0) == 0) return absl::OkStatus();
  return PosixError(errno, "cannot make a socket blocking");
}

absl::Status EchoPackets(const UniqueFd& socket, const UniqueFd& descriptor) {
  std::array<char, 4096> buffer;
  while (true) {
    HB_ASSIGN_OR_RETURN(const ReceivedPacket packet,
                        ReceivePacket(socket, absl::MakeSpan(buffer), 0));
    if (packet.kind != ReceivedPacket::Kind::kMessage) return absl::OkStatus();
    const std::array<int, 1> descriptors = {descriptor.get()};
    const bool with_descriptor = buffer[0] == 'd';
    HB_RETURN_IF_ERROR(SendPacket(socket, absl::string_view(buffer.data(), packet.size),
                                  absl::MakeSpan(descriptors.data(), with_descriptor ? 1 : 0))
                           .status());
  }
}

// Serves one connection after the other: there is one client.
absl::Status ServePackets(const UniqueFd& listener) {
  const UniqueFd descriptor(memfd_create("benchmark", MFD_CLOEXEC));
  if (!descriptor) return PosixError(errno, "memfd_create");
  while (true) {
    HB_ASSIGN_OR_RETURN(const UniqueFd socket, AcceptUnix(listener));
    if (!socket) continue;
    HB_RETURN_IF_ERROR(MakeBlocking(socket));
    // An error here is the client's end, seen from this side.
    EchoPackets(socket, descriptor).IgnoreError();
  }
}

void RunQueue(grpc::ServerCompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<EchoCall*>(tag)->Proceed(ok);
}

absl::Status Serve(const std::string& directory) {
  EchoService service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.AddListeningPort(absl::StrCat("unix:", directory, "/echo.sock"),
                           grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("gRPC could not start a server");
  EchoCall::Expect(service, *queue);
  std::vector<std::thread> threads;
  for (int i = 0; i < RpcServerOptions().threads; ++i) {
    threads.emplace_back([&queue] { RunQueue(*queue); });
  }
  // Last: whoever can connect here finds gRPC ready as well.
  absl::StatusOr<UniqueFd> listener =
      ListenUnix(absl::StrCat(directory, "/packets.sock"), SocketKind::kSeqPacket, 0600);
  absl::Status status = listener.ok() ? MakeBlocking(*listener) : listener.status();
  if (status.ok()) status = ServePackets(*listener);
  server->Shutdown();
  queue->Shutdown();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: benchmark_echo_server DIRECTORY\n";
    return 2;
  }
  // Comes back only when it cannot serve.
  std::cerr << "benchmark_echo_server: " << heapbroker::Serve(argv[1]) << "\n";
  return 1;
}

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/echo_peer.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/transport/runtime_dirs.h"
#include "common/base/status_macros.h"
#include "common/posix/packet.h"
#include "common/posix/unix_socket.h"
#include "grpcpp/grpcpp.h"
#include "tests/support/daemon_process.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

constexpr size_t kPacketBytes = 32;

}  // namespace

absl::StatusOr<std::unique_ptr<EchoPeer>> EchoPeer::Start() {
  auto directory = std::make_unique<TempDir>();
  ProcessOptions options;
  options.command = {BuiltProgramPath("benchmark_echo_server"), directory->path()};
  HB_ASSIGN_OR_RETURN(Process process, Process::Start(options));
  std::unique_ptr<EchoPeer> peer(new EchoPeer(std::move(process)));
  peer->directory_ = std::move(directory);
  HB_RETURN_IF_ERROR(peer->Connect(peer->directory_->path()));
  return peer;
}

absl::Status EchoPeer::Connect(const std::string& directory) {
  const bool connected = WaitFor([&] {
    absl::StatusOr<UniqueFd> socket = ConnectUnix(absl::StrCat(directory, "/packets.sock"),
                                                  SocketKind::kSeqPacket, absl::Seconds(5));
    if (socket.ok()) packets_ = *std::move(socket);
    return packets_.valid() || !process_.Running();
  });
  if (!connected || !packets_.valid()) {
    return absl::UnavailableError(
        absl::StrCat("the echo server does not serve; it says: ", process_.ErrorOutput()));
  }
  stub_ = v1::MemoryBroker::NewStub(grpc::CreateChannel(
      GrpcTarget(absl::StrCat(directory, "/echo.sock")), grpc::InsecureChannelCredentials()));
  return absl::OkStatus();
}

absl::Status EchoPeer::PacketRoundTrip() { return RoundTrip('p', 0); }

absl::Status EchoPeer::DescriptorRoundTrip() { return RoundTrip('d', 1); }

absl::Status EchoPeer::RoundTrip(char first, size_t descriptors) {
  std::array<char, kPacketBytes> buffer{};
  buffer[0] = first;
  HB_RETURN_IF_ERROR(
      SendPacket(packets_, absl::string_view(buffer.data(), buffer.size())).status());
  HB_ASSIGN_OR_RETURN(const ReceivedPacket packet,
                      ReceivePacket(packets_, absl::MakeSpan(buffer), descriptors));
  if (packet.size != kPacketBytes || packet.descriptors.size() != descriptors) {
    return absl::InternalError("the echo server sent something else back");
  }
  return absl::OkStatus();
}

}  // namespace heapbroker

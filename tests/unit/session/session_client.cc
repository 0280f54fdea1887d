// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/session/session_client.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/time/time.h"
#include "common/posix/packet.h"
#include "common/posix/unix_socket.h"
#include "daemon/session/conversation.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

std::string HelloPacket(const std::string& name, bool observer) {
  v1::SessionRequest request;
  request.mutable_hello()->set_protocol_major(kProtocolMajor);
  request.mutable_hello()->set_protocol_minor(kProtocolMinor);
  request.mutable_hello()->set_name(name);
  request.mutable_hello()->set_observer(observer);
  return request.SerializeAsString();
}

std::string FetchPacket(absl::Span<const BlockId> blocks) {
  v1::SessionRequest request;
  request.mutable_fetch();
  for (const BlockId block : blocks) request.mutable_fetch()->add_block_ids(block.value());
  return request.SerializeAsString();
}

SessionClient::SessionClient(const std::string& path) {
  absl::StatusOr<UniqueFd> socket = ConnectUnix(path, SocketKind::kSeqPacket, kPatience);
  EXPECT_TRUE(socket.ok()) << socket.status();
  if (socket.ok()) socket_ = *std::move(socket);
}

void SessionClient::Send(absl::string_view packet, const std::vector<int>& descriptors) {
  const absl::StatusOr<SendResult> sent = SendPacket(socket_, packet, descriptors);
  EXPECT_TRUE(sent.ok()) << sent.status();
}

ReceivedReply SessionClient::Receive() {
  ReceivedReply reply;
  const absl::Status readable = WaitReadable(socket_, kPatience);
  EXPECT_TRUE(readable.ok()) << readable;
  if (!readable.ok()) return reply;
  std::array<char, 16384> buffer;
  absl::StatusOr<ReceivedPacket> packet = ReceivePacket(socket_, absl::MakeSpan(buffer), 32);
  // Closing with requests unread is told as an error.
  if (!packet.ok() || packet->kind == ReceivedPacket::Kind::kEnd) {
    reply.ended = true;
    return reply;
  }
  EXPECT_FALSE(packet->truncated);
  EXPECT_TRUE(reply.message.ParseFromArray(buffer.data(), static_cast<int>(packet->size)));
  reply.descriptors = std::move(packet->descriptors);
  return reply;
}

SessionId SessionClient::Open(const std::string& name, bool observer) {
  Send(HelloPacket(name, observer));
  const ReceivedReply reply = Receive();
  EXPECT_TRUE(reply.message.has_welcome()) << reply.message.ShortDebugString();
  return SessionId(reply.message.welcome().session_id());
}

ReceivedReply SessionClient::Fetch(absl::Span<const BlockId> blocks) {
  Send(FetchPacket(blocks));
  return Receive();
}

bool SessionClient::IsDropped() {
  while (true) {
    if (!WaitReadable(socket_, kPatience).ok()) return false;
    if (Receive().ended) return true;
  }
}

int SessionClient::UnreadBytes() const {
  int bytes = -1;
  EXPECT_EQ(ioctl(socket_.get(), SIOCINQ, &bytes), 0);
  return bytes;
}

std::string Content(const UniqueFd& fd) {
  char text[32];
  const ssize_t size = pread(fd.get(), text, sizeof text, 0);
  return size < 0 ? std::string() : std::string(text, size);
}

SessionServerTest::SessionServerTest(const SessionServerOptions& options) {
  absl::StatusOr<UniqueFd> listener = ListenUnix(path_, SocketKind::kSeqPacket, 0666);
  EXPECT_TRUE(listener.ok()) << listener.status();
  server_ = std::make_unique<SessionServer>(*std::move(listener), core_.sessions,
                                            std::vector<DeviceBroker*>{&core_.broker}, options,
                                            core_.logger);
  const absl::Status started = server_->Start();
  EXPECT_TRUE(started.ok()) << started;
}

size_t SessionServerTest::OwnDescriptors() const { return OpenDescriptorCount(getpid()).value(); }

}  // namespace heapbroker

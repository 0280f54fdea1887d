// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/session_connection.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/packet.h"

namespace heapbroker {
namespace {

constexpr char kClosed[] = "it closed the connection";

// Requests of one closing client that are thrown away. More do not fit into a
// socket buffer of the usual size, and where they do it is no great loss.
constexpr int kMaxDiscarded = 1024;

// Whether the peer has read all that was sent to it.
//
// The kernel wakes the waiter from the middle of letting go of a message
// (sock_wfree), while one byte of it is still counted: at that moment 1 means
// that all has been read. A message itself always counts for more.
bool AllRead(const UniqueFd& socket) {
  int unread = 0;
  return ioctl(socket.get(), SIOCOUTQ, &unread) == 0 && unread <= 1;
}

}  // namespace

absl::StatusOr<SessionConnection> SessionConnection::Accept(UniqueFd socket, SessionGate& gate,
                                                            const v1::SessionLimits& limits,
                                                            UnreadDescriptors& unread) {
  HB_ASSIGN_OR_RETURN(const PeerCredentials peer, GetPeerCredentials(socket));
  absl::StatusOr<UniqueFd> pidfd = OpenPeerPidfd(socket);
  if (!pidfd.ok()) {
    // The only answer that it can get; whether it arrives changes nothing.
    SendPacket(socket, RefusalPacket(pidfd.status())).IgnoreError();
    return pidfd.status();
  }
  return SessionConnection(std::move(socket), *std::move(pidfd), Conversation(gate, limits, peer),
                           unread);
}

uint32_t SessionConnection::WaitEvents() const {
  return waits_for_reader_ ? EPOLLOUT | EPOLLET | EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
}

void SessionConnection::NoteRead() {
  if (AllRead(socket_)) unread_ = UnreadDescriptors::Claim();
}

std::optional<std::string> SessionConnection::Advance() {
  waits_for_reader_ = !AllRead(socket_);
  if (waits_for_reader_) return std::nullopt;
  unread_ = UnreadDescriptors::Claim();
  std::array<char, kMaxRequestPacketBytes> buffer;
  const absl::StatusOr<ReceivedPacket> packet =
      ReceivePacket(socket_, absl::MakeSpan(buffer), /*max_descriptors=*/0);
  if (!packet.ok()) return std::string(packet.status().message());
  if (packet->kind == ReceivedPacket::Kind::kWouldBlock) return std::nullopt;
  if (packet->kind == ReceivedPacket::Kind::kEnd) return kClosed;

  Answer answer;
  if (packet->truncated) {
    answer.ends = absl::StrCat("a request has at most ", kMaxRequestPacketBytes, " bytes");
  } else if (packet->descriptors_lost) {
    answer.ends = "a request must not carry descriptors";
  }
  if (answer.ends) {
    answer.packet = RefusalPacket(absl::InvalidArgumentError(*answer.ends));
  } else {
    answer = conversation_.Handle(absl::string_view(buffer.data(), packet->size),
                                  all_unread_->Room(kMaxBlocksPerFetch));
  }
  return Send(answer);
}

std::optional<std::string> SessionConnection::Send(const Answer& answer) {
  absl::InlinedVector<int, kMaxBlocksPerFetch> descriptors;
  for (const auto& exported : answer.exported) descriptors.push_back(exported->fd());
  absl::StatusOr<SendResult> sent = SendPacket(socket_, answer.packet, descriptors);
  if (!descriptors.empty() && absl::IsResourceExhausted(sent.status())) {
    // Too many descriptors of the daemon's user are on their way, whoever holds
    // them up. The client can ask again; its session is no worse for it.
    sent = SendPacket(socket_, RefusalPacket(absl::ResourceExhaustedError(absl::StrCat(
                                   "fetch: ", sent.status().message(), "; try again later"))));
  } else if (!descriptors.empty()) {
    unread_ = all_unread_->Add(descriptors.size());
  }
  if (answer.ends) {
    DiscardRequests();
    return answer.ends;
  }
  if (absl::IsUnavailable(sent.status())) return kClosed;
  if (!sent.ok()) return std::string(sent.status().message());
  // Nothing was unread, so there was room, unless buffers are absurdly small.
  if (*sent == SendResult::kWouldBlock) return "an answer does not fit into its socket buffer";
  return std::nullopt;
}

void SessionConnection::DiscardRequests() {
  // No more come after this, so that none can slip in behind the last look.
  shutdown(socket_.get(), SHUT_RD);
  std::array<char, 1> buffer;
  for (int i = 0; i < kMaxDiscarded; ++i) {
    const absl::StatusOr<ReceivedPacket> packet =
        ReceivePacket(socket_, absl::MakeSpan(buffer), /*max_descriptors=*/0);
    if (!packet.ok() || packet->kind != ReceivedPacket::Kind::kMessage) return;
  }
}

}  // namespace heapbroker

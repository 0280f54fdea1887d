// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/packet.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

// Room for one SCM_RIGHTS of the largest size.
struct alignas(cmsghdr) ControlBuffer {
  char bytes[CMSG_SPACE(kMaxPacketDescriptors * sizeof(int))];
};

void AttachDescriptors(absl::Span<const int> descriptors, ControlBuffer& control, msghdr& message) {
  const size_t bytes = descriptors.size() * sizeof(int);
  std::memset(control.bytes, 0, CMSG_SPACE(bytes));
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
}

// Takes over every descriptor that the kernel installed, so that none leaks.
void TakeDescriptors(msghdr& message, std::vector<UniqueFd>& descriptors) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

absl::StatusOr<SendResult> SendPacket(const UniqueFd& socket, absl::string_view bytes,
                                      absl::Span<const int> descriptors) {
  if (bytes.empty()) {
    return absl::InvalidArgumentError("an empty packet cannot be told from the end; send a byte");
  }
  if (descriptors.size() > kMaxPacketDescriptors) {
    return absl::InvalidArgumentError(absl::StrCat("a packet carries at most ",
                                                   kMaxPacketDescriptors, " descriptors, not ",
                                                   descriptors.size()));
  }
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control;
  if (!descriptors.empty()) AttachDescriptors(descriptors, control, message);
  ssize_t sent;
  do {
    sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return SendResult::kSent;
  if (errno == EAGAIN) return SendResult::kWouldBlock;
  return PosixError(errno, "cannot send a packet");
}

absl::StatusOr<ReceivedPacket> ReceivePacket(const UniqueFd& socket, absl::Span<char> buffer,
                                             size_t max_descriptors) {
  max_descriptors = std::min(max_descriptors, kMaxPacketDescriptors);
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control;
  if (max_descriptors > 0) {
    message.msg_control = control.bytes;
    // CMSG_LEN, not CMSG_SPACE: the kernel fills the padding with another one.
    message.msg_controllen = CMSG_LEN(max_descriptors * sizeof(int));
  }
  ssize_t received;
  do {
    received = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);

  ReceivedPacket packet;
  if (received < 0) {
    if (errno == EAGAIN) return packet;
    return PosixError(errno, "cannot receive a packet");
  }
  if (message.msg_controllen > 0) TakeDescriptors(message, packet.descriptors);
  packet.kind = received == 0 ? ReceivedPacket::Kind::kEnd : ReceivedPacket::Kind::kMessage;
  packet.size = static_cast<size_t>(received);
  packet.truncated = (message.msg_flags & MSG_TRUNC) != 0;
  packet.descriptors_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  if (packet.descriptors.size() > max_descriptors) {
    packet.descriptors.resize(max_descriptors);
    packet.descriptors_lost = true;
  }
  return packet;
}

}  // namespace heapbroker

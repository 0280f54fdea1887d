// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One SOCK_SEQPACKET message at a time, with or without descriptors.
#ifndef COMMON_POSIX_PACKET_H_
#define COMMON_POSIX_PACKET_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

// The most descriptors that the kernel carries with one message (SCM_MAX_FD).
inline constexpr size_t kMaxPacketDescriptors = 253;

enum class SendResult {
  kSent,
  kWouldBlock,  // Nothing was sent; the socket is non-blocking and full.
};

// Sends all of `bytes`, which must not be empty, and a copy of each of
// `descriptors` (borrowed, at most kMaxPacketDescriptors), or nothing. Raises no
// SIGPIPE.
//   UNAVAILABLE         the peer has gone
//   RESOURCE_EXHAUSTED  memory ran out, or too many descriptors that this user
//                       sent are unread (ETOOMANYREFS); may work later
//   INVALID_ARGUMENT    too large, empty, or not open
absl::StatusOr<SendResult> SendPacket(const UniqueFd& socket, absl::string_view bytes,
                                      absl::Span<const int> descriptors = {});

struct ReceivedPacket {
  enum class Kind {
    kMessage,
    kEnd,         // The peer has closed. An empty packet looks the same.
    kWouldBlock,  // The socket is non-blocking and has nothing.
  };
  Kind kind = Kind::kWouldBlock;
  size_t size = 0;         // Bytes of the buffer that are the message.
  bool truncated = false;  // The message was larger than the buffer; the rest is lost.
  // Descriptors came that are not in `descriptors`: more than were allowed, or
  // this process is at its descriptor limit. The surplus is closed.
  bool descriptors_lost = false;
  std::vector<UniqueFd> descriptors;  // With close-on-exec.
};

// Receives one message into `buffer`. With `max_descriptors` 0 no control buffer
// is given to the kernel, which then discards descriptors by itself: a peer
// cannot make this process open any.
//   UNAVAILABLE  the peer has gone and left a message of ours unread
//   INTERNAL     anything else
absl::StatusOr<ReceivedPacket> ReceivePacket(const UniqueFd& socket, absl::Span<char> buffer,
                                             size_t max_descriptors);

}  // namespace heapbroker
#endif  // COMMON_POSIX_PACKET_H_

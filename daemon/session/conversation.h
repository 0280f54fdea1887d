// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What is said on one connection of the session socket.
#ifndef DAEMON_SESSION_CONVERSATION_H_
#define DAEMON_SESSION_CONVERSATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/posix/peer.h"
#include "daemon/core/device_memory.h"
#include "daemon/messages/limits.h"
#include "daemon/session/open_session.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {

inline constexpr uint32_t kProtocolMajor = 1;
inline constexpr uint32_t kProtocolMinor = 0;

// Bytes of one request; a larger packet ends the session.
inline constexpr size_t kMaxRequestPacketBytes = 4096;

// What the daemon says to one request.
struct Answer {
  std::string packet;  // A SessionReply.
  // Their descriptors go with the packet, in this order; it says Fetched.
  std::vector<std::shared_ptr<const ExportedHandle>> exported = {};
  // Set: the connection closes after the answer, for this reason.
  std::optional<std::string> ends = std::nullopt;
};

// The protocol of proto/heapbroker/v1/session.proto over bytes: requests in,
// answers out, with neither socket nor clock.
//
//     waiting for hello ──────── hello ───────▶ open
//             │                                   │
//       refused, or no hello        a second hello, or no request at all
//             └────────────▶ ended ◀──────────────┘
//
// Destroying it ends the session. Not thread-safe.
class Conversation {
 public:
  // `limits` are what the welcome tells. `gate` and `limits` must outlive this.
  Conversation(SessionGate& gate, const v1::SessionLimits& limits, const PeerCredentials& peer)
      : gate_(gate), limits_(limits), peer_(peer) {}

  // `packet` is one request, as it came; the answer has at most `max_descriptors`,
  // which is not zero. Not to be called after an answer that ends the conversation.
  Answer Handle(absl::string_view packet, size_t max_descriptors = kMaxBlocksPerFetch);

  // Null until a hello was accepted.
  const OpenSession* open() const { return open_.get(); }
  const PeerCredentials& peer() const { return peer_; }

 private:
  Answer HandleHello(const v1::Hello& hello);
  Answer HandleFetch(const v1::Fetch& fetch, size_t max_descriptors) const;
  v1::SessionReply Welcome() const;

  SessionGate& gate_;
  const v1::SessionLimits& limits_;
  const PeerCredentials peer_;
  std::unique_ptr<OpenSession> open_;
};

// A SessionReply that says Refusal. `status` must not be OK.
std::string RefusalPacket(const absl::Status& status);

}  // namespace heapbroker
#endif  // DAEMON_SESSION_CONVERSATION_H_

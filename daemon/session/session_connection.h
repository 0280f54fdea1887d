// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One connection of the session socket.
#ifndef DAEMON_SESSION_SESSION_CONNECTION_H_
#define DAEMON_SESSION_SESSION_CONNECTION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/posix/peer.h"
#include "common/posix/unique_fd.h"
#include "daemon/session/conversation.h"
#include "daemon/session/unread_descriptors.h"

namespace heapbroker {

// Carries a conversation over a non-blocking SOCK_SEQPACKET socket.
//
// A request is read only when the answer to the one before has been read by the
// client. That one rule keeps three promises: the descriptors of at most one packet
// are on their way to a client (the kernel counts them against the daemon's whole uid),
// answers never pile up in the daemon, and a client that does not read stops
// nobody but itself, since its further requests wait in its own socket buffer.
//
// Owns socket, pidfd and session: destroying it closes and ends all three. Not
// thread-safe.
class SessionConnection {
 public:
  // Takes the peer's identity from the kernel.
  //   UNAVAILABLE         the peer has gone already
  //   RESOURCE_EXHAUSTED  descriptors ran out
  // All references must outlive the connection.
  static absl::StatusOr<SessionConnection> Accept(UniqueFd socket, SessionGate& gate,
                                                  const v1::SessionLimits& limits,
                                                  UnreadDescriptors& unread);

  // Borrowed, for waiting. Readable: see WaitEvents. `pidfd` becomes readable
  // when the peer's process ends, and may be empty: see OpenPeerPidfd.
  const UniqueFd& socket() const { return socket_; }
  const UniqueFd& pidfd() const { return pidfd_; }

  // The epoll events of `socket` after which to call Advance; changes with each
  // call of it. While a request waits for an answer to be read this is an edge:
  // the kernel tells each time that the client reads.
  uint32_t WaitEvents() const;

  // Handles at most one request. Returns why the connection has to be closed, if
  // it has to.
  std::optional<std::string> Advance();

  // Looks whether the last answer has been read, which is otherwise seen when the
  // client asks again.
  void NoteRead();

  const OpenSession* session() const { return conversation_.open(); }
  const PeerCredentials& peer() const { return conversation_.peer(); }

 private:
  SessionConnection(UniqueFd socket, UniqueFd pidfd, Conversation conversation,
                    UnreadDescriptors& unread)
      : socket_(std::move(socket)),
        pidfd_(std::move(pidfd)),
        conversation_(std::move(conversation)),
        all_unread_(&unread) {}

  std::optional<std::string> Send(const Answer& answer);
  // Requests that are left unread at closing would make the kernel throw away
  // the last answer, too.
  void DiscardRequests();

  UniqueFd socket_;
  UniqueFd pidfd_;
  Conversation conversation_;
  UnreadDescriptors* all_unread_;
  UnreadDescriptors::Claim unread_;  // Of the last answer.
  // A request is there, and the answer to the one before is unread. Not set just
  // because an answer is unread: most clients read it before they ask again, and
  // then nobody has to be woken for it.
  bool waits_for_reader_ = false;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_SESSION_CONNECTION_H_

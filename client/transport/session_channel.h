// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The session socket, seen from the client.
#ifndef CLIENT_TRANSPORT_SESSION_CHANNEL_H_
#define CLIENT_TRANSPORT_SESSION_CHANNEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/transport/call_limits.h"
#include "client/transport/turn.h"
#include "common/posix/packet.h"
#include "common/posix/unique_fd.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {

// One request at a time, each answered in order. The session lasts as long as
// this object, or until HangUp.
//
// Thread-safe: requests of several threads take turns.
class SessionChannel {
 public:
  // Errors of ConnectUnix, and CANCELLED.
  static absl::StatusOr<std::unique_ptr<SessionChannel>> Open(const std::string& path,
                                                              const CallLimits& limits);

  // The first request, and the only one of its kind. What the daemon refuses the
  // session with, or
  //   DEADLINE_EXCEEDED  no answer in time
  //   CANCELLED          as `limits` say
  //   UNAVAILABLE        the daemon closed the socket
  //   INTERNAL           the answer makes no sense
  absl::StatusOr<v1::Welcome> SayHello(const v1::Hello& hello, const CallLimits& limits);

  // The descriptors of the first of these blocks, at least of one, in their order and
  // with close-on-exec: as many as the daemon sends in one packet and this process has
  // room for. `block_ids` must not be empty. Errors of SayHello, and
  //   RESOURCE_EXHAUSTED  this process has no free descriptor; the session lives on
  absl::StatusOr<std::vector<UniqueFd>> Fetch(absl::Span<const uint64_t> block_ids,
                                              const CallLimits& limits);

  // Whether the session has ended, as the kernel says; does not wait.
  bool HungUp() const;
  // Waits until it has; as WaitForHangUp.
  absl::Status AwaitHangUp(absl::Duration timeout, const UniqueFd* interrupt) const;
  // Ends the session now, and whatever waits for it, also where a forked child has a
  // copy of the socket.
  void HangUp();

 private:
  struct Answer {
    v1::SessionReply reply;
    std::vector<UniqueFd> descriptors;
    bool descriptors_lost = false;
  };

  explicit SessionChannel(UniqueFd socket);

  absl::StatusOr<Answer> Exchange(const v1::SessionRequest& request, const CallLimits& limits);
  absl::Status Send(const v1::SessionRequest& request);
  // `interrupt` is readable once the call is cancelled; null where it cannot be.
  absl::StatusOr<Answer> AwaitAnswer(const CallLimits& limits, const UniqueFd* interrupt);
  absl::StatusOr<Answer> Receive(const CallLimits& limits, const UniqueFd* interrupt);
  absl::StatusOr<ReceivedPacket> ReceiveNow(const CallLimits& limits);
  absl::Status Lost();

  const UniqueFd socket_;
  Turn turn_;
  // Both belong to whoever has the turn.
  std::vector<char> buffer_;
  // Answers to requests that nobody waits for any more: they come first.
  uint64_t overdue_answers_ = 0;
  std::atomic<bool> lost_ = false;
  // Of the welcome.
  std::atomic<size_t> max_blocks_per_fetch_ = 1;
};

// For every call of a session that has ended.
absl::Status SessionEndedError();

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_SESSION_CHANNEL_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One session after another, for a Client that stays.
#ifndef CLIENT_TRANSPORT_SESSION_KEEPER_H_
#define CLIENT_TRANSPORT_SESSION_KEEPER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/transport/call_limits.h"
#include "client/transport/connection.h"
#include "client/transport/reconnect_pace.h"
#include "heapbroker/client.h"

namespace heapbroker {

// Notices that a session is lost, tells it, and connects again:
//
//        Connect            noticed, by a call or by the thread
//   ───────────────▶ alive ──────────────────────────────────▶ lost
//                      ▲                                        │ on_lost
//                      │ on_reconnected                         ▼
//                      └───────────────────────── pause, connect, pause, …
//
// What belongs to a session (leases, attachments, blocks) shares its Connection and
// never meets the next one. The thread is there while a session is lost; with
// SessionHandlers always, asleep in the kernel until the session socket hangs up.
//
// Ends the current session with the last that shares it. Thread-safe. A forked child
// gets FAILED_PRECONDITION and may drop it.
class SessionKeeper {
 public:
  // The first session. Errors of Client::Connect.
  static absl::StatusOr<std::shared_ptr<SessionKeeper>> Connect(
      const ClientOptions& options, const CallLimits& limits,
      std::unique_ptr<ReconnectPace> pace = std::make_unique<RealReconnectPace>());
  // No handler runs any longer, except for one that does this.
  ~SessionKeeper();
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  absl::Status CheckProcess() const;

  // The session for a call that is made now. UNAVAILABLE where it is lost; the message
  // says how connecting again goes.
  absl::StatusOr<std::shared_ptr<Connection>> Current();
  // The same, but waits for the next one.
  //   UNAVAILABLE                   there will be none: see ReconnectOptions::enabled
  //   DEADLINE_EXCEEDED, CANCELLED  as `limits` say
  absl::StatusOr<std::shared_ptr<Connection>> Await(const CallLimits& limits);
  // The current or the last one, whatever has become of it; null in a forked child.
  std::shared_ptr<Connection> Last() const;

  absl::Duration call_timeout() const;
  bool reconnects() const;

 private:
  struct State;
  explicit SessionKeeper(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // Shared with the thread.
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_SESSION_KEEPER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The session thread: waiting, accepting, timing out, ending.
#ifndef DAEMON_SESSION_SESSION_LOOP_H_
#define DAEMON_SESSION_SESSION_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/text.h"
#include "common/posix/epoll.h"
#include "common/posix/log_limiter.h"
#include "common/posix/logging.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/requests.h"
#include "daemon/messages/limits.h"
#include "daemon/session/open_session.h"
#include "daemon/session/session_connection.h"

namespace heapbroker {

struct SessionServerOptions {
  // From connecting to the hello.
  absl::Duration hello_timeout = absl::Seconds(5);
  // Connections that owe a hello. When one more comes, the one that has owed it
  // longest is dropped, so that silent ones cannot keep others out.
  size_t max_waiting_for_hello = 128;
  SessionCountLimits max_sessions;

  // What the welcome tells clients of the daemon's limits.
  uint32_t max_request_bytes = kMaxRequestBytes;
  uint32_t max_blocks_per_call = kMaxBlocksPerCall;
  uint32_t max_name_bytes = kMaxNameBytes;

  // Descriptors that were sent and not read, of all sessions together, up to which
  // several go in one packet; see UnreadDescriptors.
  size_t few_unread_descriptors = 256;
};

// Everything that the session thread works on; see SessionServer. Used by that
// thread alone once Run is called.
class SessionLoop {
 public:
  // The tags under which the caller adds the listener, and what ends Run.
  static constexpr uint64_t kListenerTag = 0;
  static constexpr uint64_t kStopTag = 1;

  SessionLoop(UniqueFd listener, Epoll epoll, Sessions& sessions,
              std::vector<DeviceBroker*> brokers, const SessionServerOptions& options,
              Logger& logger);
  SessionLoop(const SessionLoop&) = delete;
  SessionLoop& operator=(const SessionLoop&) = delete;

  // Returns when kStopTag is readable, after ending all sessions.
  void Run();

 private:
  using Clock = Epoll::Clock;
  // Counted up from 1, so that a late event of a connection that has ended finds
  // nothing, and not a newer one.
  using Key = uint64_t;
  using Connections = std::map<Key, SessionConnection>;

  static uint64_t SocketTag(Key key) { return key << 1; }
  static uint64_t PidfdTag(Key key) { return key << 1 | 1; }

  std::optional<Clock::time_point> NextDeadline() const;
  void HandleEvent(const Epoll::Event& event);
  void HandleSocket(Connections::iterator connection, uint32_t events);
  void HandleDeadlines();

  // Where there is no room for several descriptors in one packet: looks which
  // clients have read theirs.
  void CountUnread();

  void AcceptSome();
  void AddConnection(UniqueFd socket);
  absl::Status Watch(Key key, const SessionConnection& connection);
  // Stops listening for a while; `why` is what ran out.
  void PauseAccepting(const absl::Status& why);

  void End(Connections::iterator connection, absl::string_view why);

  const SessionServerOptions options_;
  const Clock::duration hello_timeout_;
  const v1::SessionLimits limits_;
  UniqueFd listener_;
  Epoll epoll_;
  SessionGate gate_;
  LogLimiter session_log_;
  LogLimiter failure_log_;

  Key last_key_ = 0;
  // Ordered by key, which is by deadline, too: all get the same time.
  std::map<Key, Clock::time_point> waiting_for_hello_;
  std::optional<Clock::time_point> accept_again_at_;  // Set while not listening.
  UnreadDescriptors unread_;
  Clock::time_point count_unread_at_{};  // Not again before.
  // Last, so that the sessions in it end first.
  Connections connections_;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_SESSION_LOOP_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/session_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {
namespace {

// Accepted in one go, so that a flood of connections leaves time for sessions.
constexpr int kMaxAcceptsAtOnce = 16;

// For as long as nothing can be accepted for want of descriptors or memory, a
// try costs a wake-up.
constexpr std::chrono::milliseconds kAcceptPause{100};

// Looking at every connection takes a fraction of a millisecond where there are as
// many as there may be: seldom enough to cost nobody anything.
constexpr std::chrono::milliseconds kCountUnreadInterval{20};

// Log lines at the start and end of sessions, and of what never became one. The
// first are seldom left out, and only where somebody connects in a loop.
constexpr uint32_t kSessionLogBurst = 1000;
constexpr std::chrono::milliseconds kSessionLogInterval{50};
constexpr uint32_t kFailureLogBurst = 10;
constexpr std::chrono::seconds kFailureLogInterval{6};

v1::SessionLimits LimitsMessage(const SessionServerOptions& options) {
  v1::SessionLimits limits;
  limits.set_max_request_bytes(options.max_request_bytes);
  limits.set_max_blocks_per_call(options.max_blocks_per_call);
  limits.set_max_name_bytes(options.max_name_bytes);
  limits.set_max_blocks_per_fetch(kMaxBlocksPerFetch);
  return limits;
}

std::string Describe(const PeerCredentials& peer) {
  return absl::StrCat("uid ", peer.uid, ", pid ",
                      peer.pid == 0 ? "unknown" : absl::StrCat(peer.pid));
}

std::string Describe(const SessionConnection& connection) {
  if (connection.session() == nullptr) {
    return absl::StrCat("a connection of ", Describe(connection.peer()));
  }
  const Session& session = connection.session()->session();
  return absl::StrCat(session.identity.observer ? "observer session " : "session ",
                      session.id.value(), " \"", Printable(session.identity.name), "\" (",
                      Describe(connection.peer()), ")");
}

}  // namespace

SessionLoop::SessionLoop(UniqueFd listener, Epoll epoll, Sessions& sessions,
                         std::vector<DeviceBroker*> brokers, const SessionServerOptions& options,
                         Logger& logger)
    : options_(options),
      hello_timeout_(absl::ToChronoNanoseconds(options.hello_timeout)),
      limits_(LimitsMessage(options)),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      gate_(sessions, std::move(brokers), options.max_sessions),
      session_log_(logger, kSessionLogBurst, kSessionLogInterval),
      failure_log_(logger, kFailureLogBurst, kFailureLogInterval),
      unread_(options.few_unread_descriptors) {}

void SessionLoop::Run() {
  bool stopping = false;
  while (!stopping) {
    for (const Epoll::Event& event : epoll_.Wait(NextDeadline())) {
      if (event.tag == kStopTag) {
        stopping = true;
      } else {
        HandleEvent(event);
      }
    }
    HandleDeadlines();
  }
  while (!connections_.empty()) End(connections_.begin(), "the daemon stops");
}

std::optional<SessionLoop::Clock::time_point> SessionLoop::NextDeadline() const {
  std::optional<Clock::time_point> next = accept_again_at_;
  if (!waiting_for_hello_.empty()) {
    const Clock::time_point hello = waiting_for_hello_.begin()->second;
    next = next ? std::min(*next, hello) : hello;
  }
  return next;
}

void SessionLoop::HandleEvent(const Epoll::Event& event) {
  if (event.tag == kListenerTag) return AcceptSome();
  const auto connection = connections_.find(event.tag >> 1);
  // Ended by an event of the same round.
  if (connection == connections_.end()) return;
  if (event.tag == PidfdTag(connection->first)) return End(connection, "its process ended");
  HandleSocket(connection, event.events);
}

void SessionLoop::HandleSocket(Connections::iterator connection, uint32_t events) {
  // What it may have sent before it left needs no answer any more.
  if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) {
    return End(connection, "it closed the connection");
  }
  CountUnread();
  const bool was_open = connection->second.session() != nullptr;
  const uint32_t waited_for = connection->second.WaitEvents();
  if (const auto why = connection->second.Advance()) return End(connection, *why);

  if (!was_open && connection->second.session() != nullptr) {
    waiting_for_hello_.erase(connection->first);
    session_log_.Write(Clock::now(), LogLevel::kInfo,
                       absl::StrCat(Describe(connection->second), " started"));
  }
  const uint32_t wait_for = connection->second.WaitEvents();
  if (wait_for == waited_for) return;
  const absl::Status changed =
      epoll_.Modify(connection->second.socket(), wait_for, SocketTag(connection->first));
  if (!changed.ok()) End(connection, changed.message());
}

void SessionLoop::HandleDeadlines() {
  const Clock::time_point now = Clock::now();
  while (!waiting_for_hello_.empty() && waiting_for_hello_.begin()->second <= now) {
    End(connections_.find(waiting_for_hello_.begin()->first),
        absl::StrCat("it said no hello within ", absl::FormatDuration(options_.hello_timeout)));
  }
  if (!accept_again_at_ || *accept_again_at_ > now) return;
  if (epoll_.Modify(listener_, EPOLLIN, kListenerTag).ok()) {
    accept_again_at_.reset();
  } else {
    accept_again_at_ = now + kAcceptPause;
  }
}

void SessionLoop::CountUnread() {
  if (unread_.Room(kMaxBlocksPerFetch) == kMaxBlocksPerFetch) return;
  const Clock::time_point now = Clock::now();
  if (now < count_unread_at_) return;
  count_unread_at_ = now + kCountUnreadInterval;
  for (auto& [key, connection] : connections_) connection.NoteRead();
}

void SessionLoop::AcceptSome() {
  for (int i = 0; i < kMaxAcceptsAtOnce && !accept_again_at_; ++i) {
    absl::StatusOr<UniqueFd> socket = AcceptUnix(listener_);
    if (!socket.ok()) return PauseAccepting(socket.status());
    if (!*socket) return;
    AddConnection(*std::move(socket));
  }
}

void SessionLoop::PauseAccepting(const absl::Status& why) {
  // Without a pause the connection that waits would wake this thread again at
  // once, for ever.
  epoll_.Modify(listener_, 0, kListenerTag).IgnoreError();
  const Clock::time_point now = Clock::now();
  accept_again_at_ = now + kAcceptPause;
  failure_log_.Write(now, LogLevel::kWarning,
                     absl::StrCat(why.message(),
                                  "; raise the daemon's limit of open files, or "
                                  "connect fewer clients"));
}

void SessionLoop::AddConnection(UniqueFd socket) {
  absl::StatusOr<SessionConnection> accepted =
      SessionConnection::Accept(std::move(socket), gate_, limits_, unread_);
  if (!accepted.ok()) {
    if (absl::IsResourceExhausted(accepted.status())) PauseAccepting(accepted.status());
    return;  // Otherwise it has gone already.
  }
  if (waiting_for_hello_.size() >= options_.max_waiting_for_hello) {
    End(connections_.find(waiting_for_hello_.begin()->first),
        "it said no hello while too many others wait to say theirs");
  }
  const Key key = ++last_key_;
  const auto connection = connections_.emplace(key, *std::move(accepted)).first;
  waiting_for_hello_.emplace(key, Clock::now() + hello_timeout_);
  const absl::Status watched = Watch(key, connection->second);
  if (!watched.ok()) End(connection, watched.message());
}

absl::Status SessionLoop::Watch(Key key, const SessionConnection& connection) {
  const absl::Status watched =
      epoll_.Add(connection.socket(), connection.WaitEvents(), SocketTag(key));
  if (!watched.ok() || !connection.pidfd()) return watched;
  return epoll_.Add(connection.pidfd(), EPOLLIN, PidfdTag(key));
}

void SessionLoop::End(Connections::iterator connection, absl::string_view why) {
  const bool was_open = connection->second.session() != nullptr;
  const std::string line = absl::StrCat(Describe(connection->second),
                                        was_open ? " ended: " : " became no session: ", why);
  epoll_.Remove(connection->second.socket());
  if (connection->second.pidfd()) epoll_.Remove(connection->second.pidfd());
  waiting_for_hello_.erase(connection->first);
  connections_.erase(connection);
  (was_open ? session_log_ : failure_log_).Write(Clock::now(), LogLevel::kInfo, line);
}

}  // namespace heapbroker

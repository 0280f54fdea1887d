// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The accept loop in front of gRPC, and the connections that came through it.
#ifndef DAEMON_RPC_CONNECTION_ACCEPTOR_H_
#define DAEMON_RPC_CONNECTION_ACCEPTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/posix/epoll.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/administrators.h"

namespace heapbroker {

// gRPC must not own the listening socket: it would unlink and bind the path
// itself, so that a second daemon silently took over the first one's. It does not
// tell when a connection closes either. So each connection is duplicated here,
// and the duplicate is watched for the peer's end: that is how connections are
// counted, and how they are cut off when gRPC itself would wait for a peer. A peer
// that closes its half only is gone as well, read what was sent to it or not: gRPC
// would keep the socket for as long as something is unread.
//
// There is a bound on connections, since each costs two descriptors and its
// peer's buffers before it has shown a session. One more than that is accepted and
// closed at once, unless it is an administrator's, as the kernel says: left in the
// kernel's queue, it would keep others waiting there until they time out, and its peer
// would never learn why.
//
// One thread, which sleeps until something happens. While descriptors or memory
// are short it leaves the listener alone and tries again after a pause; who
// wants to connect waits in the kernel's queue.
class ConnectionAcceptor {
 public:
  struct Limits {
    size_t connections = 0;  // That have not ended, at a time.
    size_t reserved = 0;     // As many more for administrators.
    Administrators administrators = {};
  };
  // Takes a connected, non-blocking socket.
  using Handler = std::function<void(UniqueFd connection)>;

  // `listener` is a listening, non-blocking socket. `handler` runs on the acceptor's
  // thread, and not after Stop() has returned.
  //   RESOURCE_EXHAUSTED, INTERNAL  what the kernel said
  static absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> Start(UniqueFd listener,
                                                                   const Limits& limits,
                                                                   Handler handler);

  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;
  ~ConnectionAcceptor();

  // Accepts nothing from here on and closes the listener. Calling it twice is
  // harmless; not thread-safe.
  void Stop();

  // Ends all connections, for both sides; whoever waits for a peer gets an error.
  // After Stop() only.
  void ShutDownConnections();

  // Connections whose peer has not gone. Thread-safe.
  size_t connections() const { return count_.load(std::memory_order_relaxed); }
  // Those that were closed at once because there were too many. Thread-safe.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  ConnectionAcceptor(UniqueFd listener, Epoll epoll, WakeUp wake, const Limits& limits,
                     Handler handler);

  void Run();
  void AcceptWaiting();
  absl::Status AcceptOne(bool* accepted);
  bool HasRoomFor(const UniqueFd& connection) const;
  void Forget(uint64_t key);
  void PauseListening();
  void ResumeListeningIfDue();

  UniqueFd listener_;
  Epoll epoll_;
  WakeUp wake_;  // Signalled when the thread is to end.
  const Limits limits_;
  const Handler handler_;

  // Of the thread, and of others only after it has ended.
  absl::flat_hash_map<uint64_t, UniqueFd> duplicates_;
  uint64_t last_key_;
  // When the listener is asked again; empty while it is listened to.
  std::optional<Epoll::Clock::time_point> resume_at_;

  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> refused_{0};
  std::thread thread_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONNECTION_ACCEPTOR_H_

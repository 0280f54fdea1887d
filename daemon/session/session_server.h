// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's side of the session socket.
#ifndef DAEMON_SESSION_SESSION_SERVER_H_
#define DAEMON_SESSION_SESSION_SERVER_H_

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/posix/epoll.h"
#include "common/posix/logging.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/sessions.h"
#include "daemon/session/session_loop.h"

namespace heapbroker {

// Serves session.sock on one thread of its own, which opens sessions, sends
// descriptors and notices each session's end. Makes no device call and waits for
// no client, so that none can hold up another; while nothing happens and nobody
// owes a hello, it does not wake up.
//
// Start and Stop are for one thread, once each.
class SessionServer {
 public:
  // `listener` is a listening, non-blocking SOCK_SEQPACKET socket; whoever made
  // it removes its file. At least one broker, each at its device's index. All
  // references, and the brokers, must outlive this.
  SessionServer(UniqueFd listener, Sessions& sessions, absl::Span<DeviceBroker* const> brokers,
                const SessionServerOptions& options, Logger& logger);
  // As Stop.
  ~SessionServer();
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;

  //   RESOURCE_EXHAUSTED  descriptors ran out; nothing was started
  absl::Status Start();

  // Stops listening, ends all sessions and returns when that is done. No new
  // session is opened after this returns.
  void Stop();

 private:
  UniqueFd listener_;
  Sessions& sessions_;
  const std::vector<DeviceBroker*> brokers_;
  const SessionServerOptions options_;
  Logger& logger_;

  std::optional<WakeUp> stop_;
  std::unique_ptr<SessionLoop> loop_;
  std::thread thread_;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_SESSION_SERVER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Sessions from their opening to their end.
#ifndef DAEMON_SESSION_OPEN_SESSION_H_
#define DAEMON_SESSION_OPEN_SESSION_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/requests.h"
#include "daemon/core/sessions.h"

namespace heapbroker {

// A session that the core knows. Destroying it ends it there: first its token
// stops working, then all that it holds is given back, so that no call can come
// in between and take something more.
//
// Not thread-safe; belongs to the session thread.
class OpenSession {
 public:
  ~OpenSession();
  OpenSession(const OpenSession&) = delete;
  OpenSession& operator=(const OpenSession&) = delete;

  const Session& session() const { return session_; }
  const SessionToken& token() const { return token_; }

  // As DeviceBroker::Fetch, on whichever device the block is.
  absl::StatusOr<FetchedBlock> Fetch(BlockId block) const;

 private:
  friend class SessionGate;
  OpenSession(Sessions& sessions, absl::Span<DeviceBroker* const> brokers, Session session,
              const SessionToken& token);

  Sessions& sessions_;
  const absl::Span<DeviceBroker* const> brokers_;
  const Session session_;
  const SessionToken token_;
};

// How many sessions there may be at once. Observers are counted apart, so that
// clients that use up theirs cannot keep an administrator from looking.
struct SessionCountLimits {
  size_t clients = 1024;
  size_t observers = 64;
};

// Opens sessions. Not thread-safe; belongs to the session thread.
class SessionGate {
 public:
  // At least one broker; they and `sessions` must outlive the gate and every
  // session that it opens.
  SessionGate(Sessions& sessions, std::vector<DeviceBroker*> brokers, SessionCountLimits limits);
  SessionGate(const SessionGate&) = delete;
  SessionGate& operator=(const SessionGate&) = delete;

  // The token is drawn here, and works when this returns; a client's session may
  // then use every device. An observer's is made known to no device.
  //   RESOURCE_EXHAUSTED  there are as many sessions as there may be
  //   PERMISSION_DENIED   a device does not serve this tenant beside the one it has
  absl::StatusOr<std::unique_ptr<OpenSession>> Open(SessionIdentity identity);

  absl::Span<DeviceBroker* const> brokers() const { return brokers_; }

 private:
  absl::Status CheckCount(bool observer) const;

  Sessions& sessions_;
  const std::vector<DeviceBroker*> brokers_;
  const SessionCountLimits limits_;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_OPEN_SESSION_H_

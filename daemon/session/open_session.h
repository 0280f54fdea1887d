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
#include "daemon/core/administrators.h"
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

  // Those that serve the session, in their order; all of them for an observer,
  // which they do not know.
  absl::Span<DeviceBroker* const> devices() const { return devices_; }

  // As DeviceBroker::Fetch, on the device that the block is on.
  absl::StatusOr<FetchedBlock> Fetch(BlockId block) const;

 private:
  friend class SessionGate;
  OpenSession(Sessions& sessions, absl::Span<DeviceBroker* const> brokers, Session session,
              const SessionToken& token);

  // Makes a client's session known to each device that serves its tenant.
  //   PERMISSION_DENIED  none does; as the first one says it
  absl::Status Admit();

  Sessions& sessions_;
  const absl::Span<DeviceBroker* const> brokers_;  // Each at its device's index.
  std::vector<DeviceBroker*> devices_;
  const Session session_;
  const SessionToken token_;
};

// How many sessions there may be at once. Observers are counted apart: those who look
// take nothing from those who work. Of both there are more for administrators, so that
// nobody who uses up all others keeps them from looking and trimming.
struct SessionCountLimits {
  size_t clients = 1024;
  size_t observers = 64;
  size_t reserved = 8;  // Of each.
  Administrators administrators = {};
};

// Opens sessions. Not thread-safe; belongs to the session thread.
class SessionGate {
 public:
  // At least one broker, each at its device's index; they and `sessions` must
  // outlive the gate and every session that it opens.
  SessionGate(Sessions& sessions, std::vector<DeviceBroker*> brokers, SessionCountLimits limits);
  SessionGate(const SessionGate&) = delete;
  SessionGate& operator=(const SessionGate&) = delete;

  // The token is drawn here, and works when this returns; a client's session may
  // then use every device that serves its tenant. An observer's is made known to no
  // device.
  //   RESOURCE_EXHAUSTED  there are as many sessions as there may be
  //   PERMISSION_DENIED   no device serves this tenant beside the one it has
  absl::StatusOr<std::unique_ptr<OpenSession>> Open(SessionIdentity identity);

 private:
  absl::Status CheckCount(const SessionIdentity& identity) const;

  Sessions& sessions_;
  const std::vector<DeviceBroker*> brokers_;
  const SessionCountLimits limits_;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_OPEN_SESSION_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/sessions.h"

#include <utility>

#include "absl/status/status.h"

namespace heapbroker {

Sessions::Sessions(const Clock& clock) : clock_(clock) {}

Session Sessions::Open(SessionIdentity identity, const SessionToken& token) {
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  Session session{SessionId(++last_id_), std::move(identity), now};
  entries_.emplace(session.id, Entry{session, token});
  by_token_.emplace(token, session.id);
  return session;
}

absl::StatusOr<Session> Sessions::Find(const SessionToken& token) const {
  MutexLock lock(mutex_);
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) {
    return absl::UnauthenticatedError(
        "heapbroker-session-bin: no open session has this token; the session may have ended: "
        "connect to the session socket again");
  }
  return entries_.find(found->second)->second.session;
}

void Sessions::End(SessionId id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  by_token_.erase(found->second.token);
  entries_.erase(found);
}

std::vector<Session> Sessions::List(SessionId after, size_t limit, bool include_observers) const {
  std::vector<Session> sessions;
  MutexLock lock(mutex_);
  for (auto it = entries_.upper_bound(after); it != entries_.end() && sessions.size() < limit;
       ++it) {
    const Session& session = it->second.session;
    if (include_observers || !session.identity.observer) sessions.push_back(session);
  }
  return sessions;
}

Sessions::Counts Sessions::Count() const {
  Counts counts;
  MutexLock lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    ++(entry.session.identity.observer ? counts.observers : counts.clients);
  }
  return counts;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who is connected.
#ifndef DAEMON_CORE_SESSIONS_H_
#define DAEMON_CORE_SESSIONS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace heapbroker {

// 128 random bits that only the session and the daemon know.
using SessionToken = std::array<uint8_t, 16>;

// What the kernel says of a peer, and the name it gave itself.
struct SessionIdentity {
  uint32_t uid = 0;
  uint32_t gid = 0;
  int32_t pid = 0;  // 0: the kernel could not tell (another pid namespace).
  std::string name;
  bool observer = false;
};

struct Session {
  SessionId id;
  SessionIdentity identity;
  absl::Time start_time;

  TenantId tenant() const { return TenantId(identity.uid); }
};

// The table of open sessions. Thread-safe; its own mutex, under which nothing
// is called.
class Sessions {
 public:
  explicit Sessions(const Clock& clock);

  // Makes a session known under `token`, which the caller draws at random.
  Session Open(SessionIdentity identity, const SessionToken& token);

  // The session of a call.
  //   UNAUTHENTICATED  no session has this token, or it has ended
  absl::StatusOr<Session> Find(const SessionToken& token) const;

  // The token stops working before this returns. Ending twice is harmless.
  void End(SessionId id);

  // Ordered by id, those above `after` only, at most `limit`.
  std::vector<Session> List(SessionId after, size_t limit, bool include_observers) const;

  struct Counts {
    size_t clients = 0;
    size_t observers = 0;
  };
  Counts Count() const;

 private:
  struct Entry {
    Session session;
    SessionToken token;
  };

  const Clock& clock_;
  mutable Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<SessionId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<SessionToken, SessionId> by_token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_SESSIONS_H_

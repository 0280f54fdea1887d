// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What clients say that they keep idle themselves.
#ifndef DAEMON_CORE_CLIENT_CACHES_H_
#define DAEMON_CORE_CLIENT_CACHES_H_

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "daemon/core/requests.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Bookkeeping only; guarded by its owner's mutex.
class ClientCaches {
 public:
  explicit ClientCaches(size_t heaps) : heaps_(heaps) {}

  // All that the session keeps; heaps that are not named have nothing. Each heap at
  // most once.
  void Report(SessionId session, absl::Span<const IdleReport> reports);
  void Forget(SessionId session) { Report(session, {}); }

  // The session has no more than that on the heap.
  void Cap(SessionId session, uint32_t heap, Bytes most);

  Bytes on(uint32_t heap) const { return heaps_[heap].total; }

  struct Ask {
    SessionId session;
    Bytes bytes;
  };
  // Whom to ask for `bytes` of the heap, those that keep most first. What a session was
  // asked for is not asked for again before `until`, which must not go back; the rest of
  // what it keeps may be.
  std::vector<Ask> ChooseWhomToAsk(uint32_t heap, Bytes bytes, absl::Time now, absl::Time until);
  // What could still be asked for.
  Bytes AskableOn(uint32_t heap, absl::Time now) const;
  // When time alone makes that more, on any heap; InfiniteFuture where it does not.
  absl::Time NextAskable(absl::Time now) const;

 private:
  struct Cache {
    Bytes bytes;
    Bytes asked;  // For so much of it, and until when.
    absl::Time asked_until = absl::InfinitePast();

    Bytes askable(absl::Time now) const;
  };
  struct Heap {
    std::map<SessionId, Cache> caches;
    std::set<std::pair<Bytes, SessionId>> by_size;
    Bytes total;
  };
  void Set(Heap& heap, SessionId session, Bytes bytes);

  std::vector<Heap> heaps_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_CLIENT_CACHES_H_

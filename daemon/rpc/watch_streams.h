// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which sessions listen, and where to.
#ifndef DAEMON_RPC_WATCH_STREAMS_H_
#define DAEMON_RPC_WATCH_STREAMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "daemon/rpc/session_reports.h"
#include "daemon/rpc/watch_queue.h"

namespace heapbroker {

// One open Watch. Its call must not own any of the two functions, which own it.
struct WatchStream {
  std::shared_ptr<WatchQueue> queue;
  std::shared_ptr<SessionReports> reports;
  std::function<void()> changed;  // The queue has something.
  std::function<void(const absl::Status&)> finish;
};

// The open Watch of each session that has one. Thread-safe; nothing is called
// under its mutex.
class WatchStreams {
 public:
  struct Begun {
    uint64_t number = 0;  // Never used again.
    // Those of the session: the replaced stream's where there was one.
    std::shared_ptr<SessionReports> reports;
    // Is not told anything any more, and is the caller's to finish.
    std::optional<WatchStream> replaced;
  };
  // From here on `stream` is the session's.
  Begun Begin(SessionId session, WatchStream stream);
  // Forgets it. Harmless where another stream has replaced it.
  void End(SessionId session, uint64_t number);
  // Ends whatever stream the session has: nothing counts as idle in it any more.
  void Finish(SessionId session, const absl::Status& status);

  // Dropped where the session does not listen.
  void Deliver(SessionId session, WatchedEvent event);

  size_t size() const;

 private:
  struct Entry {
    uint64_t number = 0;
    WatchStream stream;
  };

  mutable Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<SessionId, Entry> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_WATCH_STREAMS_H_

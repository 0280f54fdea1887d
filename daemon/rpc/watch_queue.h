// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a session is to be told over its Watch and has not been sent yet.
#ifndef DAEMON_RPC_WATCH_QUEUE_H_
#define DAEMON_RPC_WATCH_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <variant>

#include "common/base/mutex.h"
#include "daemon/core/event_sink.h"

namespace heapbroker {

// The events that go to whoever listens.
using WatchedEvent = std::variant<GiveBackWanted, SegmentSealed>;

// Bounded, whatever happens and however slowly the client reads. Requests to give
// back are one for each heap, for the bytes of all whose deadline had not passed when
// the next was made, until the latest. When it is full the oldest SegmentSealed goes, which the
// client can learn by other means; where there is none, the oldest of all.
//
// Thread-safe.
class WatchQueue {
 public:
  static constexpr size_t kMaxEvents = 64;

  void Push(WatchedEvent event);
  // The oldest; empty where there is none.
  std::optional<WatchedEvent> Pop();

 private:
  // True when `event` became part of one that is in the queue.
  bool Merge(const WatchedEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::deque<WatchedEvent> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_WATCH_QUEUE_H_

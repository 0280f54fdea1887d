// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/watch_streams.h"

#include <utility>

namespace heapbroker {

WatchStreams::Begun WatchStreams::Begin(SessionId session, WatchStream stream) {
  Begun begun;
  MutexLock lock(mutex_);
  begun.number = ++last_number_;
  Entry& entry = streams_[session];
  if (entry.number != 0) {
    stream.reports = entry.stream.reports;
    begun.replaced = std::move(entry.stream);
  }
  begun.reports = stream.reports;
  entry = {begun.number, std::move(stream)};
  return begun;
}

void WatchStreams::End(SessionId session, uint64_t number) {
  WatchStream ended;  // Destroyed outside the lock: it owns its call.
  MutexLock lock(mutex_);
  const auto found = streams_.find(session);
  if (found == streams_.end() || found->second.number != number) return;
  ended = std::move(found->second.stream);
  streams_.erase(found);
}

void WatchStreams::Finish(SessionId session, const absl::Status& status) {
  Entry ended;
  {
    MutexLock lock(mutex_);
    const auto found = streams_.find(session);
    if (found == streams_.end()) return;
    ended = std::move(found->second);
    streams_.erase(found);
  }
  ended.stream.reports->End(ended.number);
  ended.stream.finish(status);
}

void WatchStreams::Deliver(SessionId session, WatchedEvent event) {
  WatchStream stream;
  {
    MutexLock lock(mutex_);
    const auto found = streams_.find(session);
    if (found == streams_.end()) return;
    stream = found->second.stream;
  }
  stream.queue->Push(std::move(event));
  stream.changed();
}

size_t WatchStreams::size() const {
  MutexLock lock(mutex_);
  return streams_.size();
}

}  // namespace heapbroker

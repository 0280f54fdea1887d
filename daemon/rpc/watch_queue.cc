// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/watch_queue.h"

#include <algorithm>
#include <utility>

namespace heapbroker {

void WatchQueue::Push(WatchedEvent event) {
  MutexLock lock(mutex_);
  if (Merge(event)) return;
  if (events_.size() == kMaxEvents) MakeRoom();
  events_.push_back(std::move(event));
}

std::optional<WatchedEvent> WatchQueue::Pop() {
  MutexLock lock(mutex_);
  if (events_.empty()) return std::nullopt;
  WatchedEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool WatchQueue::Merge(const WatchedEvent& event) {
  const auto* wanted = std::get_if<GiveBackWanted>(&event);
  if (wanted == nullptr) return false;
  for (WatchedEvent& queued : events_) {
    auto* other = std::get_if<GiveBackWanted>(&queued);
    if (other == nullptr || other->device != wanted->device || other->heap != wanted->heap) {
      continue;
    }
    // One whose time is over is asked for anew; others are asked for beside each other.
    if (other->deadline <= wanted->since) other->bytes = Bytes();
    other->bytes = CheckedAdd(other->bytes, wanted->bytes).value_or(Bytes::Max());
    other->deadline = std::max(other->deadline, wanted->deadline);
    other->since = std::max(other->since, wanted->since);
    return true;
  }
  return false;
}

void WatchQueue::MakeRoom() {
  const auto sealed = std::find_if(events_.begin(), events_.end(), [](const WatchedEvent& queued) {
    return std::holds_alternative<SegmentSealed>(queued);
  });
  events_.erase(sealed != events_.end() ? sealed : events_.begin());
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pending_calls.h"

#include <utility>

namespace heapbroker {

CallId PendingCalls::AddAllocate(AllocateHandler handler) { return Add(std::move(handler)); }

CallId PendingCalls::AddOpenSegment(OpenSegmentHandler handler) { return Add(std::move(handler)); }

CallId PendingCalls::Add(Handler handler) {
  MutexLock lock(mutex_);
  const CallId call(++last_id_);
  handlers_.emplace(call, std::move(handler));
  return call;
}

std::optional<PendingCalls::Handler> PendingCalls::Take(CallId call) {
  MutexLock lock(mutex_);
  const auto found = handlers_.find(call);
  if (found == handlers_.end()) return std::nullopt;
  std::optional<Handler> handler = std::move(found->second);
  handlers_.erase(found);
  return handler;
}

// The handler is destroyed here, not under the mutex.
void PendingCalls::Remove(CallId call) { Take(call); }

void PendingCalls::Deliver(AllocateDone done) {
  std::optional<Handler> handler = Take(done.call);
  if (!handler.has_value()) return;
  if (auto* allocate = std::get_if<AllocateHandler>(&*handler)) {
    std::move (*allocate)(std::move(done.grant));
  }
}

void PendingCalls::Deliver(OpenSegmentDone done) {
  std::optional<Handler> handler = Take(done.call);
  if (!handler.has_value()) return;
  if (auto* open = std::get_if<OpenSegmentHandler>(&*handler)) {
    std::move (*open)(std::move(done.segment));
  }
}

size_t PendingCalls::size() const {
  MutexLock lock(mutex_);
  return handlers_.size();
}

}  // namespace heapbroker

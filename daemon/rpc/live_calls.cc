// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/live_calls.h"

#include <chrono>

namespace heapbroker {

bool LiveCalls::Add(const std::shared_ptr<Call>& call) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  calls_.emplace(call.get(), Entry{call});
  return true;
}

bool LiveCalls::Arrive(Call* call) {
  MutexLock lock(mutex_);
  calls_[call].arrived = true;
  ++arrived_;
  return !closed_;
}

void LiveCalls::Remove(Call* call) {
  MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  if (found->second.arrived) --arrived_;
  calls_.erase(found);
  // Under the mutex: whoever waits may destroy this object as soon as it sees
  // that nothing is left.
  if (closed_) removed_.NotifyAll();
}

void LiveCalls::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

std::vector<std::shared_ptr<Call>> LiveCalls::Arrived() const {
  std::vector<std::shared_ptr<Call>> arrived;
  MutexLock lock(mutex_);
  for (const auto& [address, entry] : calls_) {
    if (!entry.arrived) continue;
    if (std::shared_ptr<Call> call = entry.call.lock()) arrived.push_back(std::move(call));
  }
  return arrived;
}

bool LiveCalls::WaitUntilNoneArrived(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (arrived_ > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    removed_.WaitFor(mutex_, left);
  }
  return true;
}

void LiveCalls::WaitUntilEmpty() {
  MutexLock lock(mutex_);
  while (!calls_.empty()) removed_.Wait(mutex_);
}

}  // namespace heapbroker

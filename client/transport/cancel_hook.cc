// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/cancel_hook.h"

#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include "common/base/mutex.h"

namespace heapbroker {

// Hooks are called without the lock: each entry says whether its hook is being
// called, so that nobody takes away what it uses.
struct Cancellation::State {
  struct Entry {
    std::function<void()> hook;
    bool called = false;
  };

  // A hook that is to be called now, with its number; unset when there is none.
  std::optional<std::pair<uint64_t, std::function<void()>>> Next() {
    MutexLock lock(mutex);
    cancelled = true;
    for (auto& [number, entry] : entries) {
      if (std::exchange(entry.called, true)) continue;
      return std::pair(number, entry.hook);
    }
    return std::nullopt;
  }

  void Called(uint64_t number) {
    {
      MutexLock lock(mutex);
      entries.erase(number);
    }
    changed.NotifyAll();
  }

  // 0, which is no hook's number, where it comes too late: the last number that was
  // given is somebody else's.
  uint64_t Add(std::function<void()> hook) {
    MutexLock lock(mutex);
    if (cancelled) return 0;
    entries[++last_number] = {std::move(hook)};
    return last_number;
  }

  void Remove(uint64_t number) {
    MutexLock lock(mutex);
    while (true) {
      const auto found = entries.find(number);
      if (found == entries.end()) return;
      if (!found->second.called) {
        entries.erase(found);
        return;
      }
      changed.Wait(mutex);
    }
  }

  // Never back to false. Read without the lock, so that those who have one of their
  // own can ask.
  std::atomic<bool> cancelled = false;

  Mutex mutex;
  CondVar changed;
  uint64_t last_number ABSL_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, Entry> entries ABSL_GUARDED_BY(mutex);
};

Cancellation::Cancellation() : state_(std::make_unique<State>()) {}
Cancellation::~Cancellation() = default;

void Cancellation::Cancel() {
  while (const auto next = state_->Next()) {
    next->second();
    state_->Called(next->first);
  }
}

bool Cancellation::cancelled() const { return state_->cancelled; }

CancelHook::CancelHook(std::shared_ptr<Cancellation> cancellation, std::function<void()> hook)
    : cancellation_(std::move(cancellation)) {
  if (cancellation_ != nullptr) number_ = cancellation_->state_->Add(std::move(hook));
}

CancelHook::~CancelHook() {
  if (cancellation_ != nullptr) cancellation_->state_->Remove(number_);
}

}  // namespace heapbroker

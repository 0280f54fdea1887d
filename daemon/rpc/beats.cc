// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/beats.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grpc/support/time.h"

namespace heapbroker {

uint64_t Beats::Add(absl::Duration interval, Beat beat) {
  const Clock::duration length = absl::ToChronoNanoseconds(interval);
  MutexLock lock(mutex_);
  const uint64_t id = ++last_id_;
  const Clock::time_point next = Clock::now() + length;
  listeners_.emplace(id, Listener{length, next, std::move(beat)});
  if (!set_) {
    SetAlarm();
  } else if (next < set_for_) {
    // Comes back at once, and is set anew then.
    alarm_.Cancel();
  }
  return id;
}

void Beats::Remove(uint64_t id) {
  Beat unused;  // Destroyed outside the lock: it may hold anything.
  MutexLock lock(mutex_);
  const auto found = listeners_.find(id);
  if (found == listeners_.end()) return;
  unused = std::move(found->second.beat);
  listeners_.erase(found);
  if (listeners_.empty() && set_) alarm_.Cancel();
}

void Beats::Close() {
  std::map<uint64_t, Listener> unused;
  MutexLock lock(mutex_);
  closed_ = true;
  unused.swap(listeners_);
  if (set_) alarm_.Cancel();
}

void Beats::OnComplete(bool /*ok*/) {
  std::vector<Beat> due;
  {
    MutexLock lock(mutex_);
    set_ = false;
    const Clock::time_point now = Clock::now();
    for (auto& [id, listener] : listeners_) {
      if (listener.next > now) continue;
      due.push_back(listener.beat);
      listener.next += listener.interval;
      if (listener.next <= now) listener.next = now + listener.interval;
    }
    SetAlarm();
  }
  for (const Beat& beat : due) beat();
}

void Beats::SetAlarm() {
  if (closed_ || listeners_.empty()) return;
  const auto earliest =
      std::min_element(listeners_.begin(), listeners_.end(),
                       [](const auto& a, const auto& b) { return a.second.next < b.second.next; });
  set_ = true;
  set_for_ = earliest->second.next;
  const std::chrono::nanoseconds left =
      std::max<Clock::duration>(set_for_ - Clock::now(), Clock::duration::zero());
  alarm_.Set(
      &queue_,
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left.count(), GPR_TIMESPAN)),
      Tag());
}

}  // namespace heapbroker

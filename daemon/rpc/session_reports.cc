// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/session_reports.h"

#include <algorithm>
#include <utility>

namespace heapbroker {

SessionReports::SessionReports(const Devices& devices, SessionId session)
    : devices_(devices), session_(session) {}

void SessionReports::Begin(uint64_t stream) {
  {
    MutexLock lock(mutex_);
    if (stream <= stream_) return;
    stream_ = stream;
    open_ = true;
    if (!Leave({})) return;
  }
  Drain();
}

void SessionReports::Report(uint64_t stream, IdleByDevice idle) {
  {
    MutexLock lock(mutex_);
    if (stream_ != stream || !open_ || !Leave(std::move(idle))) return;
  }
  Drain();
}

void SessionReports::End(uint64_t stream) {
  {
    MutexLock lock(mutex_);
    if (stream_ != stream || !open_) return;
    open_ = false;
    if (!Leave({})) return;
  }
  Drain();
}

bool SessionReports::Leave(IdleByDevice idle) {
  next_ = std::move(idle);
  return !std::exchange(draining_, true);
}

void SessionReports::Drain() {
  while (std::optional<IdleByDevice> idle = TakeNext()) {
    idle->resize(devices_.all().size());
    for (size_t device = 0; device < idle->size(); ++device) {
      // Fails for a session that has ended, whose reports ended with it, and on a
      // device that it was never let onto, where it has nothing.
      devices_.all()[device]->ReportIdle(session_, (*idle)[device]).IgnoreError();
    }
  }
}

std::optional<IdleByDevice> SessionReports::TakeNext() {
  MutexLock lock(mutex_);
  while (next_.has_value()) {
    IdleByDevice idle = *std::exchange(next_, std::nullopt);
    const bool any =
        std::any_of(idle.begin(), idle.end(), [](const auto& reports) { return !reports.empty(); });
    // The core knows that already where nothing follows nothing.
    if (any || any_idle_) {
      any_idle_ = any;
      return idle;
    }
  }
  draining_ = false;
  return std::nullopt;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// When to say what is idle.
#ifndef CLIENT_SRC_IDLE_REPORTS_H_
#define CLIENT_SRC_IDLE_REPORTS_H_

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "heapbroker/memory_watch.h"

namespace heapbroker {

// The daemon ends a watch that says more than ten things a second. Eight leave
// room for messages that were held up on their way and arrive closer together.
inline constexpr std::chrono::milliseconds kReportInterval(125);

// Keeps the last report until it may be sent. Bookkeeping only; not thread-safe.
class IdleReports {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Takes the place of a report that was not sent yet.
  void Set(std::vector<IdleMemory> idle) {
    if (idle == sent_) {
      next_.reset();
    } else {
      next_ = std::move(idle);
    }
  }

  // Whoever was told has forgotten it: the last report has to be said once more.
  void SayAgain() {
    std::vector<IdleMemory> said = std::exchange(sent_, {});
    if (!next_.has_value() && !said.empty()) next_ = std::move(said);
  }

  // When there is something to send; unset: not before the next Set. May be past.
  std::optional<Time> due() const {
    return next_.has_value() ? std::optional<Time>(earliest_) : std::nullopt;
  }

  // What is due. It counts as sent at `now`.
  const std::vector<IdleMemory>& Take(Time now) {
    sent_ = *std::exchange(next_, std::nullopt);
    earliest_ = now + kReportInterval;
    return sent_;
  }

 private:
  std::optional<std::vector<IdleMemory>> next_;
  std::vector<IdleMemory> sent_;  // At first nothing is idle, and the daemon knows.
  Time earliest_ = Time::min();
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_IDLE_REPORTS_H_

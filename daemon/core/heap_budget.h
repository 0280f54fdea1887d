// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The daemon's own limit on a heap.
#ifndef DAEMON_CORE_HEAP_BUDGET_H_
#define DAEMON_CORE_HEAP_BUDGET_H_

#include <algorithm>
#include <optional>

#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// The daemon's own limit for a heap.
struct HeapLimit {
  Bytes bytes;
  // Where the driver says what it offers, at most this many thousandths of that,
  // too. Unset for a limit that an administrator set.
  std::optional<uint32_t> driver_per_mille = std::nullopt;
};

// Counts bytes from the moment they are promised until the device call that
// frees them has returned. The driver's own success is no limit: drivers
// over-commit, and lose the device later.
//
// Bookkeeping only; guarded by its owner's mutex.
class HeapBudget {
 public:
  explicit HeapBudget(Bytes limit) : limit_(limit) {}

  Bytes limit() const { return limit_; }
  Bytes in_use() const { return in_use_; }
  Bytes available() const { return limit_ - in_use_; }

  // Takes all of `bytes` or nothing.
  [[nodiscard]] bool TryTake(Bytes bytes) {
    if (bytes > available()) return false;
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
    return true;
  }

  // `bytes` must have been taken before.
  void Return(Bytes bytes) { in_use_ -= bytes; }

  HeapStats Stats(const HeapInfo& info) const {
    HeapStats stats;
    stats.info = info;
    stats.budget = limit_;
    stats.available = available();
    stats.in_use = in_use_;
    stats.peak_in_use = peak_;
    return stats;
  }

 private:
  Bytes limit_;
  Bytes in_use_;  // At most `limit_`.
  Bytes peak_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_HEAP_BUDGET_H_

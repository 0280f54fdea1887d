// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The daemon's own limit on a heap.
#ifndef DAEMON_CORE_HEAP_BUDGET_H_
#define DAEMON_CORE_HEAP_BUDGET_H_

#include <algorithm>

#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

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

  HeapStats Stats(const HeapInfo& info) const { return {info, limit_, in_use_, peak_}; }

 private:
  Bytes limit_;
  Bytes in_use_;  // At most `limit_`.
  Bytes peak_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_HEAP_BUDGET_H_

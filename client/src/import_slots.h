// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How many imports are alive.
#ifndef CLIENT_SRC_IMPORT_SLOTS_H_
#define CLIENT_SRC_IMPORT_SLOTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"

namespace heapbroker {

// Counts up to a limit. Thread-safe.
class ImportSlots {
 public:
  explicit ImportSlots(uint32_t limit) : limit_(limit) {}

  // RESOURCE_EXHAUSTED at the limit.
  absl::Status Take() {
    MutexLock lock(mutex_);
    if (taken_ >= limit_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          taken_, " of ", limit_,
          " imports: the device allows no more allocations in this process; drop buffers, or "
          "lease fewer and larger blocks"));
    }
    ++taken_;
    return absl::OkStatus();
  }

  void Give() {
    MutexLock lock(mutex_);
    --taken_;
  }

  uint32_t taken() const {
    MutexLock lock(mutex_);
    return taken_;
  }
  uint32_t limit() const { return limit_; }

 private:
  const uint32_t limit_;
  mutable Mutex mutex_;
  uint32_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_IMPORT_SLOTS_H_

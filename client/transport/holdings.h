// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a session holds, so that its loss can be told.
#ifndef CLIENT_TRANSPORT_HOLDINGS_H_
#define CLIENT_TRANSPORT_HOLDINGS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "heapbroker/reconnect.h"
#include "heapbroker/types.h"

namespace heapbroker {

// Everything that was added and not removed is in the list that Close returns, and
// nothing can be added after that: so no lease that a program gets is missing in
// what it is told. Thread-safe.
class Holdings {
 public:
  // False, and nothing is added, once closed.
  bool AddLeases(absl::Span<const ImportFacts> blocks);
  bool AddSegment(const LostSegment& segment);
  // Its writer has sealed it.
  void SealSegment(uint64_t segment_id);
  // Do nothing where there is none.
  void RemoveLease(uint64_t block_id);
  void RemoveSegment(uint64_t segment_id);

  struct All {
    std::vector<ImportFacts> leases;
    std::vector<LostSegment> segments;
  };
  All Close();

 private:
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, ImportFacts> leases_ ABSL_GUARDED_BY(mutex_);
  // A session may be attached to a segment more than once.
  std::multimap<uint64_t, LostSegment> segments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_HOLDINGS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/segment_claims.h"

namespace heapbroker {

void SegmentClaims::Add(const Key& key) {
  MutexLock lock(mutex_);
  ++entries_[key].claims;
}

std::vector<uint64_t> SegmentClaims::Remove(const Key& key) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || --found->second.claims > 0) return {};
  std::vector<uint64_t> kept = std::move(found->second.kept);
  entries_.erase(found);
  return kept;
}

bool SegmentClaims::MayRepeatClose(const Key& key, uint64_t segment_id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return true;
  found->second.kept.push_back(segment_id);
  return false;
}

}  // namespace heapbroker

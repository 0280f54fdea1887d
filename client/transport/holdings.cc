// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/holdings.h"

#include <utility>

namespace heapbroker {

bool Holdings::AddLeases(absl::Span<const ImportFacts> blocks) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  for (const ImportFacts& block : blocks) leases_[block.block_id] = block;
  return true;
}

bool Holdings::AddSegment(const LostSegment& segment) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  segments_.emplace(segment.segment_id, segment);
  return true;
}

void Holdings::SealSegment(uint64_t segment_id) {
  MutexLock lock(mutex_);
  const auto [begin, end] = segments_.equal_range(segment_id);
  for (auto segment = begin; segment != end; ++segment) segment->second.writer = false;
}

void Holdings::RemoveLease(uint64_t block_id) {
  MutexLock lock(mutex_);
  leases_.erase(block_id);
}

void Holdings::RemoveSegment(uint64_t segment_id) {
  MutexLock lock(mutex_);
  const auto found = segments_.find(segment_id);
  if (found != segments_.end()) segments_.erase(found);
}

Holdings::All Holdings::Close() {
  All all;
  MutexLock lock(mutex_);
  closed_ = true;
  for (const auto& [id, block] : std::exchange(leases_, {})) all.leases.push_back(block);
  for (const auto& [id, segment] : std::exchange(segments_, {})) all.segments.push_back(segment);
  return all;
}

}  // namespace heapbroker

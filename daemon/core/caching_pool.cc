// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/caching_pool.h"

#include <algorithm>
#include <utility>

namespace heapbroker {

CachingPool::CachingPool(ResolvedPool config, std::optional<uint32_t> memory_type)
    : config_(std::move(config)) {
  counts_.name = config_.name;
  counts_.memory_type = memory_type;
  counts_.limits = config_.limits;
}

std::variant<Claim, MissReason> CachingPool::Find(TenantId tenant, BlockClass block_class,
                                                  SizeRange range) {
  if (std::optional<Claim> found = idle_.ClaimBestFit(tenant, block_class, range)) return *found;
  if (idle_.HoldsAtLeast(tenant, block_class, range.smallest)) return MissReason::kOnlyTooLarge;
  if (idle_.Holds(tenant, block_class)) return MissReason::kOnlyTooSmall;
  return idle_.OthersHold(tenant, block_class) ? MissReason::kOtherTenantsOnly
                                               : MissReason::kNoIdleBlock;
}

Block CachingPool::Take(Claim claim, Bytes size) {
  Block block = idle_.Take(claim);
  Lease(block, size);
  return block;
}

void CachingPool::CountRequest(std::optional<MissReason> reason) {
  ++counts_.requests;
  if (reason) {
    ++counts_.misses[static_cast<size_t>(*reason)];
  } else {
    ++counts_.hits;
  }
}

bool CachingPool::CanHold(Bytes bytes) const {
  const Bytes capacity = config_.limits.max_allocation_capacity;
  // Claimed blocks are as good as leased.
  const Bytes held = counts_.leased + reserved_ + idle_.claimed_bytes();
  return held <= capacity && bytes <= capacity - held;
}

void CachingPool::Reserve(Bytes bytes) {
  reserved_ += bytes;
  NotePeak();
}

void CachingPool::Commit(Bytes reserved, const Block& block, Bytes size) {
  reserved_ -= reserved;
  Lease(block, size);
}

Evictions CachingPool::EvictOverCapacity() {
  Evictions evictions;
  const Bytes capacity = config_.limits.max_allocation_capacity;
  while (counts_.leased + reserved_ + idle_.bytes() > capacity && idle_.Oldest()) {
    evictions.push_back(EvictOldest(NotKeptReason::kCapacity));
  }
  return evictions;
}

Evictions CachingPool::Release(Block block, Bytes size, ReleaseStamp stamp, absl::Time now) {
  const uint64_t most = config_.limits.max_free_allocation_count;
  Evictions evictions;
  if (most == 0) {
    const auto reason = memory_type() ? NotKeptReason::kCount : NotKeptReason::kNeverCached;
    evictions.push_back(Discard(std::move(block), size, reason));
    return evictions;
  }
  // Nothing idle has to go for what would not fit without it either: a block that
  // came back larger than the capacity, since drivers pad.
  const Bytes capacity = config_.limits.max_allocation_capacity;
  if (counts_.leased + reserved_ > capacity) {
    evictions.push_back(Discard(std::move(block), size, NotKeptReason::kCapacity));
    return evictions;
  }
  while (idle_.size() >= most && idle_.Oldest()) {
    evictions.push_back(EvictOldest(NotKeptReason::kCount));
  }
  Unlease(block, size);
  idle_.Add(std::move(block), stamp, now);
  for (Block& evicted : EvictOverCapacity()) evictions.push_back(std::move(evicted));
  counts_.peak_idle = std::max(counts_.peak_idle, idle_.bytes());
  return evictions;
}

Block CachingPool::Discard(Block block, Bytes size, NotKeptReason reason) {
  Unlease(block, size);
  return StartFreeing(std::move(block), reason);
}

Block CachingPool::EvictOldest(NotKeptReason reason) {
  return StartFreeing(idle_.TakeOldest(), reason);
}

Block CachingPool::EvictOldest(TenantId tenant, NotKeptReason reason) {
  return StartFreeing(idle_.TakeOldest(tenant), reason);
}

Block CachingPool::StartFreeing(Block block, NotKeptReason reason) {
  being_freed_ += block.bytes();
  ++counts_.not_kept[static_cast<size_t>(reason)];
  return block;
}

PoolStats CachingPool::Stats() const {
  PoolStats stats = counts_;
  stats.reserved = reserved_;
  stats.idle = idle_.bytes();
  stats.idle_blocks = idle_.size();
  stats.largest_idle_block = idle_.largest();
  stats.being_freed = being_freed_;
  return stats;
}

void CachingPool::Lease(const Block& block, Bytes size) {
  counts_.leased += block.bytes();
  counts_.rounding += block.bytes() - size;
  ++counts_.leased_blocks;
  counts_.peak_leased = std::max(counts_.peak_leased, counts_.leased);
  NotePeak();
}

void CachingPool::Unlease(const Block& block, Bytes size) {
  counts_.leased -= block.bytes();
  counts_.rounding -= block.bytes() - size;
  --counts_.leased_blocks;
}

void CachingPool::NotePeak() {
  counts_.peak_total =
      std::max(counts_.peak_total, counts_.leased + reserved_ + idle_.bytes() + being_freed_);
}

}  // namespace heapbroker

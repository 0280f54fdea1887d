// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/caching_pool.h"

#include <algorithm>
#include <utility>

namespace heapbroker {

CachingPool::CachingPool(PoolConfig config) : config_(std::move(config)) {
  counts_.name = config_.name;
  counts_.memory_type = config_.memory_type;
  counts_.limits = config_.limits;
}

std::variant<IdleBlock, MissReason> CachingPool::Acquire(TenantId tenant, BlockClass block_class,
                                                         SizeRange range, Bytes size) {
  if (std::optional<IdleBlock> found = idle_.TakeBestFit(tenant, block_class, range)) {
    Lease(found->block, size);
    return *std::move(found);
  }
  if (idle_.size() == 0) return MissReason::kNoIdleBlock;
  return idle_.Holds(tenant, block_class) ? MissReason::kOnlyTooSmall
                                          : MissReason::kOtherTenantsOnly;
}

void CachingPool::PutBack(IdleBlock idle, Bytes size) {
  Unlease(idle.block, size);
  idle_.Add(std::move(idle));
}

void CachingPool::CountRequest(std::optional<MissReason> reason) {
  ++counts_.requests;
  if (reason) {
    ++counts_.misses[static_cast<size_t>(*reason)];
  } else {
    ++counts_.hits;
  }
}

void CachingPool::Reserve(Bytes bytes) { reserved_ += bytes; }

void CachingPool::Commit(Bytes reserved, const Block& block, Bytes size) {
  reserved_ -= reserved;
  Lease(block, size);
}

void CachingPool::Cancel(Bytes reserved) { reserved_ -= reserved; }

Evictions CachingPool::Release(Block block, Bytes size, ReleaseStamp stamp) {
  const uint64_t most = config_.limits.max_free_allocation_count;
  Evictions evictions;
  if (most == 0) {
    evictions.push_back(Discard(std::move(block), size, NotKeptReason::kCount));
    return evictions;
  }
  while (idle_.size() >= most) {
    evictions.push_back(Evict(*idle_.OldestStamp(), NotKeptReason::kCount));
  }
  Unlease(block, size);
  idle_.Add({std::move(block), stamp});
  counts_.peak_idle = std::max(counts_.peak_idle, idle_.bytes());
  return evictions;
}

Block CachingPool::Discard(Block block, Bytes size, NotKeptReason reason) {
  Unlease(block, size);
  being_freed_ += block.bytes();
  ++counts_.not_kept[static_cast<size_t>(reason)];
  return block;
}

Block CachingPool::Evict(ReleaseStamp stamp, NotKeptReason reason) {
  Block block = idle_.Take(stamp);
  being_freed_ += block.bytes();
  ++counts_.not_kept[static_cast<size_t>(reason)];
  return block;
}

void CachingPool::Freed(Bytes bytes) { being_freed_ -= bytes; }

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
}

void CachingPool::Unlease(const Block& block, Bytes size) {
  counts_.leased -= block.bytes();
  counts_.rounding -= block.bytes() - size;
  --counts_.leased_blocks;
}

}  // namespace heapbroker

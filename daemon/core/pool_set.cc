// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/pool_set.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace heapbroker {

PoolSet::PoolSet(const DeviceInfo& device, const PoolLimits& limits) {
  for (uint32_t type = 0; type < device.memory_types.size(); ++type) {
    pools_.emplace_back(PoolConfig{absl::StrCat("type ", type), type, limits});
    heap_of_type_.push_back(device.memory_types[type].heap);
  }
  PoolLimits nothing_kept;
  nothing_kept.max_free_allocation_count = 0;
  pools_.emplace_back(PoolConfig{"direct", std::nullopt, nothing_kept});
}

PoolSet::Idle PoolSet::IdleOn(uint32_t heap) const {
  Idle sum;
  for (size_t type = 0; type < heap_of_type_.size(); ++type) {
    if (heap_of_type_[type] != heap) continue;
    sum.bytes += pools_[type].idle().bytes();
    sum.blocks += pools_[type].idle().size();
  }
  return sum;
}

std::optional<Block> PoolSet::EvictOne(uint32_t heap,
                                       const std::function<bool(TenantId)>& has_session,
                                       NotKeptReason reason) {
  struct Candidate {
    CachingPool* pool = nullptr;
    ReleaseStamp stamp = 0;
    void Offer(CachingPool& other, std::optional<ReleaseStamp> other_stamp) {
      if (other_stamp && (pool == nullptr || *other_stamp < stamp)) {
        pool = &other;
        stamp = *other_stamp;
      }
    }
  };
  Candidate orphaned, oldest;
  for (size_t type = 0; type < heap_of_type_.size(); ++type) {
    if (heap_of_type_[type] != heap) continue;
    CachingPool& pool = pools_[type];
    oldest.Offer(pool, pool.idle().OldestStamp());
    for (TenantId tenant : pool.idle().Tenants()) {
      if (!has_session(tenant)) orphaned.Offer(pool, pool.idle().OldestStamp(tenant));
    }
  }
  const Candidate& chosen = orphaned.pool != nullptr ? orphaned : oldest;
  if (chosen.pool == nullptr) return std::nullopt;
  return chosen.pool->Evict(chosen.stamp, reason);
}

std::vector<PoolStats> PoolSet::Stats() const {
  std::vector<PoolStats> stats;
  for (const CachingPool& pool : pools_) stats.push_back(pool.Stats());
  return stats;
}

}  // namespace heapbroker

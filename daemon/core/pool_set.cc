// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/pool_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text.h"

namespace heapbroker {

PoolSet::PoolSet(const DeviceInfo& device, absl::Span<const ResolvedPool> pools)
    : device_(device), on_heap_(device.heaps.size()) {
  for (const ResolvedPool& pool : pools) {
    on_heap_[device.memory_types[pool.memory_type].heap].push_back(pools_.size());
    pools_.emplace_back(pool, pool.memory_type);
  }
  ResolvedPool direct;
  direct.name = "direct";
  direct.limits.max_free_allocation_count = 0;
  pools_.emplace_back(std::move(direct), std::nullopt);
}

absl::StatusOr<size_t> PoolSet::Named(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < pools_.size(); ++i) {
    if (pools_[i].config().name == name) return i;
    names.push_back(absl::StrCat("\"", pools_[i].config().name, "\""));
  }
  return absl::NotFoundError(absl::StrCat("pool: device ", device_.index, " has no pool \"",
                                          Printable(name), "\"; it has ",
                                          absl::StrJoin(names, ", ")));
}

PoolSet::Idle PoolSet::IdleOn(uint32_t heap) const {
  Idle sum;
  for (size_t i : on_heap_[heap]) {
    const IdleBlocks& idle = pools_[i].idle();
    sum.bytes += idle.bytes() - idle.claimed_bytes();
    sum.blocks += idle.size() - idle.claimed();
  }
  return sum;
}

std::optional<Block> PoolSet::EvictOne(std::optional<uint32_t> heap,
                                       absl::FunctionRef<bool(TenantId)> has_session,
                                       NotKeptReason reason) {
  CachingPool* chosen = nullptr;
  std::optional<TenantId> orphan;
  ReleaseStamp stamp = 0;
  for (CachingPool& pool : pools_) {
    // The direct row is in no heap, and keeps nothing.
    if (!pool.memory_type() || (heap && device_.memory_types[*pool.memory_type()].heap != *heap)) {
      continue;
    }
    const auto offer = [&](std::optional<IdleBlocks::Age> age, std::optional<TenantId> tenant) {
      if (!age) return;
      const bool better = chosen == nullptr || (tenant && !orphan) ||
                          (tenant.has_value() == orphan.has_value() && age->stamp < stamp);
      if (!better) return;
      chosen = &pool;
      orphan = tenant;
      stamp = age->stamp;
    };
    for (TenantId tenant : pool.idle().Tenants()) {
      if (!has_session(tenant)) offer(pool.idle().Oldest(tenant), tenant);
    }
    offer(pool.idle().Oldest(), std::nullopt);
  }
  if (chosen == nullptr) return std::nullopt;
  return orphan ? chosen->EvictOldest(*orphan, reason) : chosen->EvictOldest(reason);
}

std::optional<size_t> PoolSet::OldestPool(std::optional<size_t> only) const {
  if (only) return pools_[*only].idle().Oldest() ? only : std::nullopt;
  std::optional<size_t> oldest;
  ReleaseStamp stamp = 0;
  for (size_t i = 0; i < pools_.size(); ++i) {
    const std::optional<IdleBlocks::Age> age = pools_[i].idle().Oldest();
    if (!age || (oldest && age->stamp > stamp)) continue;
    oldest = i;
    stamp = age->stamp;
  }
  return oldest;
}

std::optional<Block> PoolSet::EvictOldest(std::optional<size_t> pool, NotKeptReason reason) {
  const std::optional<size_t> oldest = OldestPool(pool);
  if (!oldest) return std::nullopt;
  return pools_[*oldest].EvictOldest(reason);
}

std::optional<Block> PoolSet::EvictExpired(absl::Time since) {
  const std::optional<size_t> oldest = OldestPool(std::nullopt);
  if (!oldest || pools_[*oldest].idle().Oldest()->since() > since) return std::nullopt;
  return pools_[*oldest].EvictOldest(NotKeptReason::kTtl);
}

absl::Time PoolSet::OldestSince() const {
  const std::optional<size_t> oldest = OldestPool(std::nullopt);
  return oldest ? pools_[*oldest].idle().Oldest()->since() : absl::InfiniteFuture();
}

Bytes PoolSet::Retained(std::optional<size_t> pool) const {
  if (pool) return pools_[*pool].leased() + pools_[*pool].idle().bytes();
  Bytes sum;
  for (const CachingPool& each : pools_) sum += each.leased() + each.idle().bytes();
  return sum;
}

std::vector<PoolStats> PoolSet::Stats() const {
  std::vector<PoolStats> stats;
  for (const CachingPool& pool : pools_) stats.push_back(pool.Stats());
  return stats;
}

}  // namespace heapbroker

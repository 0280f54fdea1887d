// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/idle_blocks.h"

#include <utility>

namespace heapbroker {

void IdleBlocks::Add(IdleBlock idle) {
  const ReleaseStamp stamp = idle.stamp;
  by_size_.insert(KeyOf(idle.block, stamp));
  by_tenant_.emplace(idle.block.tenant, stamp);
  sizes_.insert(idle.block.bytes());
  bytes_ += idle.block.bytes();
  by_stamp_.emplace(stamp, std::move(idle.block));
}

std::optional<IdleBlock> IdleBlocks::TakeBestFit(TenantId tenant, BlockClass block_class,
                                                 SizeRange range) {
  const auto found = by_size_.lower_bound(Key(tenant, block_class, range.smallest, 0));
  if (found == by_size_.end()) return std::nullopt;
  const auto& [found_tenant, found_class, found_size, complement] = *found;
  if (found_tenant != tenant || found_class != block_class || found_size > range.largest) {
    return std::nullopt;
  }
  const ReleaseStamp stamp = ~complement;
  return IdleBlock{Take(stamp), stamp};
}

std::optional<ReleaseStamp> IdleBlocks::OldestStamp() const {
  if (by_stamp_.empty()) return std::nullopt;
  return by_stamp_.begin()->first;
}

std::optional<ReleaseStamp> IdleBlocks::OldestStamp(TenantId tenant) const {
  const auto found = by_tenant_.lower_bound({tenant, 0});
  if (found == by_tenant_.end() || found->first != tenant) return std::nullopt;
  return found->second;
}

Block IdleBlocks::Take(ReleaseStamp stamp) {
  const auto found = by_stamp_.find(stamp);
  Block block = std::move(found->second);
  by_stamp_.erase(found);
  by_size_.erase(KeyOf(block, stamp));
  by_tenant_.erase({block.tenant, stamp});
  sizes_.erase(sizes_.find(block.bytes()));
  bytes_ -= block.bytes();
  return block;
}

bool IdleBlocks::Holds(TenantId tenant, BlockClass block_class) const {
  const auto found = by_size_.lower_bound(Key(tenant, block_class, Bytes(), 0));
  return found != by_size_.end() && std::get<0>(*found) == tenant &&
         std::get<1>(*found) == block_class;
}

std::set<TenantId> IdleBlocks::Tenants() const {
  std::set<TenantId> tenants;
  // From each tenant's first block straight past its last one.
  for (auto it = by_tenant_.begin(); it != by_tenant_.end();
       it = by_tenant_.upper_bound({it->first, ~ReleaseStamp{0}})) {
    tenants.insert(it->first);
  }
  return tenants;
}

Bytes IdleBlocks::largest() const { return sizes_.empty() ? Bytes() : *sizes_.rbegin(); }

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/idle_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace heapbroker {

void IdleBlocks::Add(Block block, ReleaseStamp stamp, absl::Time since) {
  uint32_t slot = first_free_;
  if (slot == kNone) {
    slot = static_cast<uint32_t>(entries_.size());
    entries_.push_back(Entry{std::move(block), stamp, absl::ToUnixNanos(since), {}, {}, {}, false});
  } else {
    first_free_ = entries_[slot].age.newer;
    entries_[slot] = Entry{std::move(block), stamp, absl::ToUnixNanos(since), {}, {}, {}, false};
  }
  const Block& added = entries_[slot].block;
  PushNewest(by_age_, &Entry::age, slot);
  PushNewest(by_tenant_[added.tenant], &Entry::tenant_age, slot);
  AddToEquals(slot);
  ++size_;
  bytes_ += added.bytes();
}

std::optional<Claim> IdleBlocks::ClaimBestFit(TenantId tenant, BlockClass block_class,
                                              SizeRange range) {
  const auto found = by_size_.lower_bound({tenant, block_class, range.smallest});
  if (found == by_size_.end() || found->first.tenant != tenant ||
      found->first.block_class != block_class || found->first.size > range.largest) {
    return std::nullopt;
  }
  const uint32_t slot = found->second.newest;
  RemoveFromEquals(slot);
  Entry& entry = entries_[slot];
  entry.claimed = true;
  ++claimed_;
  claimed_bytes_ += entry.block.bytes();
  return Claim(slot);
}

Block IdleBlocks::Take(Claim claim) {
  Entry& entry = entries_[claim.slot_];
  entry.claimed = false;
  --claimed_;
  claimed_bytes_ -= entry.block.bytes();
  return Remove(claim.slot_);
}

void IdleBlocks::Unclaim(Claim claim) {
  Entry& entry = entries_[claim.slot_];
  entry.claimed = false;
  --claimed_;
  claimed_bytes_ -= entry.block.bytes();
  AddToEquals(claim.slot_);
}

std::optional<IdleBlocks::Age> IdleBlocks::Oldest() const {
  return AgeOf(OldestIn(by_age_, &Entry::age));
}

std::optional<IdleBlocks::Age> IdleBlocks::Oldest(TenantId tenant) const {
  const auto found = by_tenant_.find(tenant);
  if (found == by_tenant_.end()) return std::nullopt;
  return AgeOf(OldestIn(found->second, &Entry::tenant_age));
}

Block IdleBlocks::TakeOldest() {
  const uint32_t slot = OldestIn(by_age_, &Entry::age);
  RemoveFromEquals(slot);
  return Remove(slot);
}

Block IdleBlocks::TakeOldest(TenantId tenant) {
  const uint32_t slot = OldestIn(by_tenant_.find(tenant)->second, &Entry::tenant_age);
  RemoveFromEquals(slot);
  return Remove(slot);
}

bool IdleBlocks::Holds(TenantId tenant, BlockClass block_class) const {
  return HoldsAtLeast(tenant, block_class, Bytes());
}

bool IdleBlocks::HoldsAtLeast(TenantId tenant, BlockClass block_class, Bytes size) const {
  const auto found = by_size_.lower_bound({tenant, block_class, size});
  return found != by_size_.end() && found->first.tenant == tenant &&
         found->first.block_class == block_class;
}

bool IdleBlocks::OthersHold(TenantId tenant, BlockClass block_class) const {
  return std::any_of(by_tenant_.begin(), by_tenant_.end(), [&](const auto& entry) {
    return entry.first != tenant && Holds(entry.first, block_class);
  });
}

std::vector<TenantId> IdleBlocks::Tenants() const {
  std::vector<TenantId> tenants;
  for (const auto& [tenant, ends] : by_tenant_) tenants.push_back(tenant);
  return tenants;
}

Bytes IdleBlocks::largest() const {
  Bytes largest;
  // From the last size of each tenant and class to the one before it.
  for (auto it = by_size_.end(); it != by_size_.begin();) {
    const auto& [key, equals] = *std::prev(it);
    largest = std::max(largest, entries_[equals.newest].block.bytes());
    it = by_size_.lower_bound({key.tenant, key.block_class, Bytes()});
  }
  return largest;
}

void IdleBlocks::PushNewest(Ends& ends, Member links, uint32_t slot) {
  (entries_[slot].*links) = {ends.newest, kNone};
  if (ends.newest == kNone) {
    ends.oldest = slot;
  } else {
    (entries_[ends.newest].*links).newer = slot;
  }
  ends.newest = slot;
}

void IdleBlocks::Unlink(Ends& ends, Member links, uint32_t slot) {
  const Links at = entries_[slot].*links;
  (at.older == kNone ? ends.oldest : (entries_[at.older].*links).newer) = at.newer;
  (at.newer == kNone ? ends.newest : (entries_[at.newer].*links).older) = at.older;
}

void IdleBlocks::AddToEquals(uint32_t slot) {
  PushNewest(by_size_[KeyOf(entries_[slot].block)], &Entry::equals, slot);
}

void IdleBlocks::RemoveFromEquals(uint32_t slot) {
  const auto found = by_size_.find(KeyOf(entries_[slot].block));
  Unlink(found->second, &Entry::equals, slot);
  if (found->second.newest == kNone) by_size_.erase(found);
}

uint32_t IdleBlocks::OldestIn(const Ends& ends, Member links) const {
  uint32_t slot = ends.oldest;
  while (slot != kNone && entries_[slot].claimed) slot = (entries_[slot].*links).newer;
  return slot;
}

std::optional<IdleBlocks::Age> IdleBlocks::AgeOf(uint32_t slot) const {
  if (slot == kNone) return std::nullopt;
  return Age{entries_[slot].stamp, entries_[slot].since_nanos};
}

// Not among the equals any more.
Block IdleBlocks::Remove(uint32_t slot) {
  Block block = std::move(entries_[slot].block);
  Unlink(by_age_, &Entry::age, slot);
  const auto tenant = by_tenant_.find(block.tenant);
  Unlink(tenant->second, &Entry::tenant_age, slot);
  if (tenant->second.newest == kNone) by_tenant_.erase(tenant);
  --size_;
  bytes_ -= block.bytes();
  entries_[slot].age.newer = first_free_;
  first_free_ = slot;
  return block;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The blocks that a pool keeps for reuse, findable by size and by age.
#ifndef DAEMON_CORE_IDLE_BLOCKS_H_
#define DAEMON_CORE_IDLE_BLOCKS_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/block_size.h"
#include "heapbroker/units.h"

namespace heapbroker {

// When a block became idle: a count that grows with every release on the
// device, so that ages compare across pools.
using ReleaseStamp = uint64_t;

// An idle block that somebody is about to take; see IdleBlocks::Claim.
class Claim {
 public:
  Claim() = default;

 private:
  friend class IdleBlocks;
  explicit Claim(uint32_t slot) : slot_(slot) {}
  uint32_t slot_ = 0;
};

// Blocks lie in one array and are chained through it: by age, by age within their
// tenant, and among equal sizes. So keeping a block costs little memory, and the
// only search is that for a size.
//
// Claim and Add are O(log n) in the number of different sizes; everything else is
// O(1), or O(n) in what is claimed at the time.
// Bookkeeping only; guarded by its owner's mutex.
class IdleBlocks {
 public:
  // `stamp` must be greater than any before.
  void Add(Block block, ReleaseStamp stamp, absl::Time since);

  // The smallest block of the tenant and class that was made for a size in `range`;
  // among equals the one released last, whose pages are likeliest warm. It stays idle, but is
  // neither found nor evicted, until Take or Unclaim ends the claim. Unclaim in the reverse order
  // leaves no trace.
  std::optional<Claim> ClaimBestFit(TenantId tenant, BlockClass block_class, SizeRange range);
  const Block& block(Claim claim) const { return entries_[claim.slot_].block; }
  Block Take(Claim claim);
  void Unclaim(Claim claim);

  // As it is kept: a time is only made where somebody wants one, not for comparisons.
  struct Age {
    ReleaseStamp stamp;
    int64_t since_nanos;
    absl::Time since() const { return absl::FromUnixNanos(since_nanos); }
  };
  // Of the oldest block that is not claimed; of `tenant`, if given.
  std::optional<Age> Oldest() const;
  std::optional<Age> Oldest(TenantId tenant) const;
  // There must be one.
  Block TakeOldest();
  Block TakeOldest(TenantId tenant);

  // Whether the tenant has blocks of the class, and one made for at least `size`.
  // Claimed ones do not count.
  bool Holds(TenantId tenant, BlockClass block_class) const;
  bool HoldsAtLeast(TenantId tenant, BlockClass block_class, Bytes size) const;
  // Whether another tenant has. O(t log n) in the tenants.
  bool OthersHold(TenantId tenant, BlockClass block_class) const;
  // The tenants that have blocks in here, each once.
  std::vector<TenantId> Tenants() const;

  // All of them, claimed ones included; and the claimed ones.
  size_t size() const { return size_; }
  Bytes bytes() const { return bytes_; }
  size_t claimed() const { return claimed_; }
  Bytes claimed_bytes() const { return claimed_bytes_; }
  // The bytes of the one that was made for most. O(k log n) in the tenants and classes.
  Bytes largest() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A place in a list that is chained through the entries.
  struct Links {
    uint32_t older = kNone;
    uint32_t newer = kNone;
  };
  struct Ends {
    uint32_t oldest = kNone;
    uint32_t newest = kNone;
  };
  struct Entry {
    Block block;
    ReleaseStamp stamp = 0;
    int64_t since_nanos = 0;
    Links age;
    Links tenant_age;
    Links equals;  // Of the same key.
    bool claimed = false;
  };
  struct Key {
    TenantId tenant;
    BlockClass block_class;
    Bytes size;  // Block::made_for.
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  static Key KeyOf(const Block& block) { return {block.tenant, block.block_class, block.made_for}; }
  using Member = Links Entry::*;
  void PushNewest(Ends& ends, Member links, uint32_t slot);
  void Unlink(Ends& ends, Member links, uint32_t slot);
  void AddToEquals(uint32_t slot);
  void RemoveFromEquals(uint32_t slot);
  uint32_t OldestIn(const Ends& ends, Member links) const;
  std::optional<Age> AgeOf(uint32_t slot) const;
  Block Remove(uint32_t slot);

  std::vector<Entry> entries_;
  uint32_t first_free_ = kNone;  // Chained by age.newer.
  Ends by_age_;
  absl::btree_map<TenantId, Ends> by_tenant_;
  absl::btree_map<Key, Ends> by_size_;
  size_t size_ = 0;
  Bytes bytes_;
  size_t claimed_ = 0;
  Bytes claimed_bytes_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_IDLE_BLOCKS_H_

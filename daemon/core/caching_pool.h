// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Keeps freed blocks so that most allocations never reach the driver.
#ifndef DAEMON_CORE_CACHING_POOL_H_
#define DAEMON_CORE_CACHING_POOL_H_

#include <optional>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/idle_blocks.h"
#include "daemon/core/pool_spec.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Blocks whose bytes the pool now counts as being freed. Whoever gets them must
// have the device free each one and then say so: CachingPool::Freed.
using Evictions = std::vector<Block>;

// A cache of blocks of one memory type, kept apart by tenant: a block that a
// tenant has seen never reaches another one, because an exported descriptor cannot
// be called back.
//
//            Reserve              Commit
//   (none) ─────────▶ reserved ─────────▶ leased ──▶ being freed ──▶ (none)
//                        │ Cancel          │  ▲          ▲     Freed
//                        ▼          Release▼  │Take      │
//                      (none)             idle ──────────┘ EvictOldest
//
// Bookkeeping only: makes no device call and takes no lock. The device's mutex
// guards it together with the budget and the ledger, so that one snapshot of all
// three agrees. Every operation is O(log n) in the number of idle blocks.
class CachingPool {
 public:
  // `memory_type` is unset for the direct row, which is no cache: with a
  // max_free_allocation_count of 0 nothing is ever kept.
  CachingPool(ResolvedPool config, std::optional<uint32_t> memory_type);

  // An idle block of `tenant` that was made for a size in `range`; or why there is none. The
  // claim must end with Take or Unclaim. Counts nothing: see CountRequest.
  std::variant<Claim, MissReason> Find(TenantId tenant, BlockClass block_class, SizeRange range);
  // The claimed block, now leased for `size`.
  Block Take(Claim claim, Bytes size);
  void Unclaim(Claim claim) { idle_.Unclaim(claim); }

  // What became of one request, once it is certain: no reason means a hit.
  void CountRequest(std::optional<MissReason> reason);

  // Whether `bytes` more fit within the capacity, after evicting idle blocks.
  bool CanHold(Bytes bytes) const;
  // Promises `bytes`, which the pool can hold, to an allocation that is about to be
  // made.
  void Reserve(Bytes bytes);
  // Ends a reservation: the allocation arrived as `block`, leased for `size`, or
  // there is none.
  void Commit(Bytes reserved, const Block& block, Bytes size);
  void Cancel(Bytes reserved) { reserved_ -= reserved; }
  // What has to be freed, oldest first, so that the capacity holds again.
  [[nodiscard]] Evictions EvictOverCapacity();

  // Takes back a block that was leased for `size`. Returns what has to be freed so
  // that the limits hold: older idle blocks before this one, which is the likeliest
  // to be asked for again.
  [[nodiscard]] Evictions Release(Block block, Bytes size, ReleaseStamp stamp, absl::Time now);
  // Takes back a block that must not be kept.
  [[nodiscard]] Block Discard(Block block, Bytes size, NotKeptReason reason);
  // Gives up the oldest idle block, of `tenant` if given; there must be one.
  [[nodiscard]] Block EvictOldest(NotKeptReason reason);
  [[nodiscard]] Block EvictOldest(TenantId tenant, NotKeptReason reason);
  // The device call that freed a block of `bytes` has returned.
  void Freed(Bytes bytes) { being_freed_ -= bytes; }

  const IdleBlocks& idle() const { return idle_; }
  const ResolvedPool& config() const { return config_; }
  std::optional<uint32_t> memory_type() const { return counts_.memory_type; }
  Bytes leased() const { return counts_.leased; }
  PoolStats Stats() const;

 private:
  void Lease(const Block& block, Bytes size);
  void Unlease(const Block& block, Bytes size);
  Block StartFreeing(Block block, NotKeptReason reason);
  void NotePeak();

  ResolvedPool config_;
  IdleBlocks idle_;
  Bytes reserved_;
  Bytes being_freed_;
  PoolStats counts_;  // Everything that is not derived from the fields above.
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_CACHING_POOL_H_

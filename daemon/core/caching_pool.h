// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Keeps freed blocks so that most allocations never reach the driver.
#ifndef DAEMON_CORE_CACHING_POOL_H_
#define DAEMON_CORE_CACHING_POOL_H_

#include <optional>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/idle_blocks.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Blocks whose bytes the pool now counts as being freed. Whoever gets them must
// have the device free each one and then say so: CachingPool::Freed.
using Evictions = std::vector<Block>;

// Who a pool is, and how much it may keep.
struct PoolConfig {
  std::string name;
  std::optional<uint32_t> memory_type;  // Unset for the direct row.
  PoolLimits limits;
};

// A cache of blocks, kept apart by tenant: a block that a tenant has seen never
// reaches another one, because an exported descriptor cannot be called back.
//
//            Reserve              Commit
//   (none) ─────────▶ reserved ─────────▶ leased ──▶ being freed ──▶ (none)
//                        │ Cancel          │  ▲          ▲     Freed
//                        ▼          Release▼  │Acquire   │
//                      (none)             idle ──────────┘ Evict
//
// Bookkeeping only: makes no device call and takes no lock. The device's mutex
// guards it together with the budget and the ledger, so that one snapshot of all
// three agrees. Every operation is O(log n) in the number of idle blocks.
class CachingPool {
 public:
  explicit CachingPool(PoolConfig config);

  // An idle block of `tenant` whose bytes lie in `range`, now leased for `size`;
  // or why there is none. Counts nothing: see CountRequest.
  std::variant<IdleBlock, MissReason> Acquire(TenantId tenant, BlockClass block_class,
                                              SizeRange range, Bytes size);
  // Undoes Acquire; the block is as old as it was.
  void PutBack(IdleBlock idle, Bytes size);

  // What became of one request, once it is certain: no reason means a hit.
  void CountRequest(std::optional<MissReason> reason);

  // Promises `bytes` to an allocation that is about to be made.
  void Reserve(Bytes bytes);
  // Ends a reservation: the allocation arrived as `block`, leased for `size`, or
  // there is none.
  void Commit(Bytes reserved, const Block& block, Bytes size);
  void Cancel(Bytes reserved);

  // Takes back a block that was leased for `size`. Returns what has to be freed
  // so that the limits hold: older idle blocks before this one, which is the
  // likeliest to be asked for again.
  [[nodiscard]] Evictions Release(Block block, Bytes size, ReleaseStamp stamp);
  // Takes back a block that must not be kept.
  [[nodiscard]] Block Discard(Block block, Bytes size, NotKeptReason reason);
  // Gives up an idle block; `stamp` must be one of idle().
  [[nodiscard]] Block Evict(ReleaseStamp stamp, NotKeptReason reason);
  // The device call that freed a block of `bytes` has returned.
  void Freed(Bytes bytes);

  const IdleBlocks& idle() const { return idle_; }
  const PoolConfig& config() const { return config_; }
  Bytes being_freed() const { return being_freed_; }
  PoolStats Stats() const;

 private:
  void Lease(const Block& block, Bytes size);
  void Unlease(const Block& block, Bytes size);

  PoolConfig config_;
  IdleBlocks idle_;
  Bytes reserved_;
  Bytes being_freed_;
  PoolStats counts_;  // Everything that is not derived from the fields above.
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_CACHING_POOL_H_

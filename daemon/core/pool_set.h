// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// All pools of a device.
#ifndef DAEMON_CORE_POOL_SET_H_
#define DAEMON_CORE_POOL_SET_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "daemon/core/caching_pool.h"
#include "daemon/core/device_info.h"
#include "daemon/core/pool_spec.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// The configured pools in their order, and the direct row for memory that no pool
// serves. A Block keeps the index of its pool.
//
// Bookkeeping only; guarded by its owner's mutex.
class PoolSet {
 public:
  // `device` must outlive this.
  PoolSet(const DeviceInfo& device, absl::Span<const ResolvedPool> pools);

  CachingPool& pool(size_t index) { return pools_[index]; }
  const CachingPool& pool(size_t index) const { return pools_[index]; }
  size_t direct() const { return pools_.size() - 1; }

  // The pool of that name. NOT_FOUND says which there are.
  absl::StatusOr<size_t> Named(const std::string& name) const;

  // Idle bytes and blocks that could be evicted from a heap: not claimed ones.
  struct Idle {
    Bytes bytes;
    size_t blocks = 0;
  };
  Idle IdleOn(uint32_t heap) const;

  // Gives up one idle block of all heaps, or of one: of tenants without a session first,
  // whom nobody can be made to wait for; else the oldest. Unset where none is idle.
  std::optional<Block> EvictOne(std::optional<uint32_t> heap,
                                absl::FunctionRef<bool(TenantId)> has_session,
                                NotKeptReason reason);
  // Gives up the oldest idle block of all heaps, or of one pool.
  std::optional<Block> EvictOldest(std::optional<size_t> pool, NotKeptReason reason);
  // The same, if it became idle at `since` or before.
  std::optional<Block> EvictExpired(absl::Time since);
  // Since when the oldest idle block is idle; InfiniteFuture where none is.
  absl::Time OldestSince() const;

  // Leased and idle bytes of all pools, or of one.
  Bytes Retained(std::optional<size_t> pool) const;

  std::vector<PoolStats> Stats() const;

 private:
  std::optional<size_t> OldestPool(std::optional<size_t> only) const;

  const DeviceInfo& device_;
  std::vector<CachingPool> pools_;            // The direct row last.
  std::vector<std::vector<size_t>> on_heap_;  // Pools by heap; the direct row is in none.
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_POOL_SET_H_

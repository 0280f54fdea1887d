// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// All pools of a device.
#ifndef DAEMON_CORE_POOL_SET_H_
#define DAEMON_CORE_POOL_SET_H_

#include <functional>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/caching_pool.h"
#include "daemon/core/device_info.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// One caching pool for each memory type, and the direct row for memory that no
// pool serves. A Block keeps the index of its pool.
//
// Bookkeeping only; guarded by its owner's mutex.
class PoolSet {
 public:
  PoolSet(const DeviceInfo& device, const PoolLimits& limits);

  CachingPool& pool(size_t index) { return pools_[index]; }
  size_t PoolFor(uint32_t memory_type) const { return memory_type; }
  size_t direct() const { return pools_.size() - 1; }

  // Idle bytes and blocks that could be evicted from a heap.
  struct Idle {
    Bytes bytes;
    size_t blocks = 0;
  };
  Idle IdleOn(uint32_t heap) const;

  // Gives up one idle block of the heap: of tenants without a session first,
  // whom nobody can be made to wait for; else the oldest. Unset where none is idle.
  std::optional<Block> EvictOne(uint32_t heap, const std::function<bool(TenantId)>& has_session,
                                NotKeptReason reason);

  std::vector<PoolStats> Stats() const;

 private:
  std::vector<CachingPool> pools_;  // By memory type; the direct row last.
  std::vector<uint32_t> heap_of_type_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_POOL_SET_H_

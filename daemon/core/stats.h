// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Statistics as plain values, copied out under one lock.
#ifndef DAEMON_CORE_STATS_H_
#define DAEMON_CORE_STATS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/device_info.h"
#include "daemon/core/requests.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Why a request found no block in a pool.
enum class MissReason { kNoIdleBlock, kNoneOfFittingSize, kOtherTenantsOnly, kNeverCached };
inline constexpr size_t kMissReasonCount = 4;

// Why a block was freed and not kept.
enum class NotKeptReason { kCount, kPressure, kUncleanEnd, kNeverCached };
inline constexpr size_t kNotKeptReasonCount = 4;

struct PoolLimits {
  // The largest request; Max: the heap's own maximum.
  Bytes max_allocation_size = Bytes::Max();
  // Leased, reserved and idle together; Max: unlimited.
  Bytes max_allocation_capacity = Bytes::Max();
  // Idle blocks, of all tenants together; UINT64_MAX: unlimited.
  uint64_t max_free_allocation_count = 64;
};

// reserved + leased + idle + being_freed are the bytes allocated through the
// pool, exactly; requests = hits + the sum of misses.
struct PoolStats {
  std::string name;
  std::optional<uint32_t> memory_type;  // Unset for the direct row.
  PoolLimits limits;

  Bytes reserved;     // Being allocated or cleared.
  Bytes leased;       // Held by sessions and segments.
  Bytes idle;         // Kept for reuse.
  Bytes being_freed;  // With the driver, not yet returned.
  Bytes peak_leased;
  Bytes peak_idle;
  Bytes largest_idle_block;
  Bytes rounding;  // Of leased bytes, those beyond what was asked for.

  uint64_t leased_blocks = 0;
  uint64_t idle_blocks = 0;
  uint64_t requests = 0;
  uint64_t hits = 0;
  std::array<uint64_t, kMissReasonCount> misses{};
  std::array<uint64_t, kNotKeptReasonCount> not_kept{};

  uint64_t total_misses() const {
    uint64_t sum = 0;
    for (uint64_t n : misses) sum += n;
    return sum;
  }
  Bytes total() const { return reserved + leased + idle + being_freed; }
};

struct HeapStats {
  HeapInfo info;
  Bytes budget;  // The daemon's own limit.
  Bytes in_use;  // Allocated or reserved; at most `budget`.
  Bytes peak_in_use;
};

struct DeviceStats {
  DeviceInfo device;
  std::vector<HeapStats> heaps;
  std::vector<PoolStats> pools;  // The last one is the direct row.
  uint64_t allocations = 0;      // Held by the driver for the daemon, or about to be.
  uint64_t max_allocations = 0;
  uint32_t segments = 0;
  Bytes segment_bytes;  // Allocated; a part of the direct row.
};

enum class SegmentState { kFilling, kSealed, kUnused };

struct SegmentStats {
  SegmentId id;
  TenantId tenant;
  std::string name;
  SegmentState state;
  Bytes size;
  Bytes allocated;
  uint32_t blocks = 0;
  uint32_t attached_sessions = 0;
  uint32_t waiting_calls = 0;
  std::optional<Checksum> checksum;
};

// What one session holds on one device.
struct HolderStats {
  uint64_t leased_blocks = 0;
  Bytes leased_bytes;
  uint32_t attached_segments = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_STATS_H_

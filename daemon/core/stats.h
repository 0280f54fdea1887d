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

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/device_info.h"
#include "daemon/core/refusal.h"
#include "daemon/core/requests.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Why a request found no block in a pool.
enum class MissReason : uint8_t {
  kNoIdleBlock,       // Nothing is idle.
  kOnlyTooSmall,      // The tenant's idle blocks are all too small,
  kOnlyTooLarge,      // or those that are not would be given away for too little.
  kOtherTenantsOnly,  // Only other tenants have idle blocks of the class.
  kAtCapacity,        // The pool may not have that many bytes: another one, or none, was asked.
  kOverSizeLimit,     // The request is larger than the pool serves: likewise.
  kNeverCached,       // Memory of segments, and what no pool serves.
};
inline constexpr size_t kMissReasonCount = 7;

// Why a block was freed and not kept.
enum class NotKeptReason : uint8_t {
  kCount,       // More idle blocks than allowed.
  kCapacity,    // More bytes than allowed.
  kTtl,         // Idle for too long.
  kPressure,    // The bytes were needed elsewhere.
  kTrim,        // An administrator said so.
  kUncleanEnd,  // The session ended without releasing it; or clearing failed.
  kNeverCached,
};
inline constexpr size_t kNotKeptReasonCount = 7;

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
  Bytes peak_total;  // Of the sum of all four.
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
  Bytes budget;  // The daemon's own limit, which does not change.
  // Of it, what could be allocated now: less than the rest where the driver offers
  // less, or where some of it is promised.
  Bytes available;
  Bytes in_use;  // Allocated or reserved; at most `budget`.
  Bytes peak_in_use;
  // What the driver says, put right; unset where it does not say.
  std::optional<HeapReport> driver;
  // An estimate of what other programs have, of the same.
  std::optional<Bytes> others_in_use;
  // Of leased bytes, what clients say that they keep idle.
  Bytes idle_in_clients;
  uint64_t waiting_requests = 0;
  // The smallest request that the driver refused although the budget had the room.
  std::optional<Bytes> smallest_driver_refusal;
};

// What the number of blocks is limited by.
struct CountLimit {
  LimitKind kind = LimitKind::kMaxAllocationCount;
  uint64_t blocks = 0;
};

// What became of all requests for memory, segments' included.
struct RequestTotals {
  uint64_t granted = 0;
  uint64_t queued = 0;  // Of all, those that waited for what others held.
  uint64_t never_fit = 0;
  uint64_t limit_reached = 0;
  uint64_t failed = 0;  // By the device.
  uint64_t cancelled = 0;
};

struct DeviceStats {
  DeviceInfo device;
  std::vector<HeapStats> heaps;
  std::vector<PoolStats> pools;  // The last one is the direct row.
  uint64_t allocations = 0;      // Held by the driver for the daemon, or about to be.
  uint64_t max_allocations = 0;  // The lowest of `count_limits`.
  std::vector<CountLimit> count_limits;
  RequestTotals requests;
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

struct LeaseStats {
  BlockId block;
  SessionId session;
  TenantId tenant;
  BlockClass block_class;
  Bytes size;  // As asked for.
  Bytes allocated;
  std::string pool;
  absl::Time since;
};

// What one session holds on one device.
struct HolderStats {
  uint64_t leased_blocks = 0;
  Bytes leased_bytes;
  uint32_t attached_segments = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_STATS_H_

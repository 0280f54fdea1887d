// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// All memory of a device: what is in use, idle, promised, on its way back.
#ifndef DAEMON_CORE_DEVICE_ROOM_H_
#define DAEMON_CORE_DEVICE_ROOM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/core/device_info.h"
#include "daemon/core/effects.h"
#include "daemon/core/heap_budget.h"
#include "daemon/core/leases.h"
#include "daemon/core/pool_set.h"
#include "daemon/core/requests.h"
#include "daemon/core/segments.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// Keeps bytes by heap and the number of allocations together, so that whoever takes
// memory takes both or none, and knows what of the rest could be evicted.
//
// Bookkeeping only; guarded by its owner's mutex.
class DeviceRoom {
 public:
  // All of them must outlive this.
  DeviceRoom(const DeviceInfo& device, absl::Span<const HeapLimit> heaps,
             absl::Span<const CountLimit> count_limits, absl::Span<const ResolvedPool> pools,
             const Leases& leases, Segments& segments);

  PoolSet& pools() { return pools_; }
  const PoolSet& pools() const { return pools_; }
  const HeapBudget& heap(uint32_t index) const { return heaps_[index]; }
  uint32_t HeapOf(uint32_t memory_type) const { return device_.memory_types[memory_type].heap; }
  // The lowest of all limits of the number of allocations.
  const CountLimit& count_limit() const { return count_limit_; }
  uint64_t allocations() const { return allocations_; }
  uint64_t being_freed() const { return being_freed_; }

  // Takes bytes and one allocation, if both are there and not promised to others.
  [[nodiscard]] bool TryTake(uint32_t heap, Bytes bytes);
  // Undoes it: no allocation was made.
  void Return(uint32_t heap, Bytes bytes);
  // Takes other bytes for the same allocation; false, and nothing changed, where
  // these are not there.
  [[nodiscard]] bool Exchange(uint32_t heap, Bytes taken, Bytes bytes);

  // Promises bytes and an allocation that are idle or being freed; EvictForPromises
  // has them freed. Redeem takes `bytes`, at least what was promised, when they are
  // there.
  void Promise(uint32_t heap, Bytes bytes);
  void BreakPromise(uint32_t heap, Bytes bytes);
  void EvictForPromises(Effects& effects);
  [[nodiscard]] bool Redeem(uint32_t heap, Bytes promised, Bytes bytes);
  // Whether all that is promised on the heap will be there, if everything idle and
  // unused goes: not where blocks were claimed that promises counted on.
  bool CanKeepPromisesOn(uint32_t heap) const;

  // What could be had on a heap, if everything idle and unused went; and how many
  // allocations.
  Bytes RoomOn(uint32_t heap) const;
  uint64_t AllocationRoom() const;
  // Whether anything is idle or unused on the heap.
  bool HasEvictable(uint32_t heap) const { return EvictableOn(heap).blocks > 0; }
  // What there is at once.
  Bytes RoomNow(uint32_t heap) const;

  // Takes a block back, to be kept if its pool can, or to be freed.
  void GiveBack(LeasedBlock leased, absl::Time now, Effects& effects);
  void Discard(LeasedBlock leased, NotKeptReason reason, Effects& effects);
  void StartFreeing(Block block, Effects& effects);
  // The device has freed the block.
  void Freed(const Block& block);
  // How many blocks have been freed since the daemon started.
  uint64_t freed() const { return freed_; }

  // Idle blocks of tenants without a session, other idle blocks by age, sealed unused
  // segments by last use: the first that there is, on one heap or on any. False where
  // there is none.
  bool EvictOne(std::optional<uint32_t> heap, Effects& effects);
  void EvictAllOn(uint32_t heap, Effects& effects);
  absl::StatusOr<TrimResult> Trim(const TrimRequest& request, Effects& effects);
  // Blocks that became idle at `since` or before.
  void EvictExpired(absl::Time since, Effects& effects);
  // What the driver says now; where it has less than is in use, idle memory goes.
  void UpdateHeaps(absl::Span<const HeapReport> reports, Effects& effects);
  // The driver refused an allocation whose bytes were taken, or it made one.
  void NoteDriverRefusal(uint32_t heap, Bytes bytes, absl::Time now, Effects& effects);
  void NoteDriverAllocation(uint32_t heap, Bytes bytes) {
    heaps_[heap].NoteDriverAllocation(bytes);
  }

  // Heaps, pools and counts.
  void AddStats(DeviceStats& stats) const;

 private:
  struct Evictable {
    Bytes bytes;
    uint64_t blocks = 0;
  };
  Evictable EvictableOn(uint32_t heap) const;
  uint64_t AllocationsThatStay() const;  // Promised ones included.
  bool EvictUnusedSegment(std::optional<uint32_t> heap, NotKeptReason reason, Effects& effects);

  const DeviceInfo& device_;
  const Leases& leases_;
  Segments& segments_;
  const std::vector<CountLimit> count_limits_;
  CountLimit count_limit_;
  std::vector<HeapBudget> heaps_;
  PoolSet pools_;
  uint64_t allocations_ = 0;  // Blocks, from being taken until freed.
  uint64_t being_freed_ = 0;  // Of those, with the device to free.
  uint64_t promised_ = 0;
  uint64_t freed_ = 0;
  ReleaseStamp last_stamp_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_ROOM_H_

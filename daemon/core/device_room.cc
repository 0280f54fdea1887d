// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_room.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

CountLimit Lowest(absl::Span<const CountLimit> limits) {
  CountLimit lowest{LimitKind::kMaxAllocationCount, UINT64_MAX};
  for (const CountLimit& limit : limits) {
    if (limit.blocks < lowest.blocks) lowest = limit;
  }
  return lowest;
}

}  // namespace

DeviceRoom::DeviceRoom(const DeviceInfo& device, absl::Span<const HeapLimit> heaps,
                       absl::Span<const CountLimit> count_limits,
                       absl::Span<const ResolvedPool> pools, const Leases& leases,
                       Segments& segments)
    : device_(device),
      leases_(leases),
      segments_(segments),
      count_limits_(count_limits.begin(), count_limits.end()),
      count_limit_(Lowest(count_limits)),
      pools_(device, pools) {
  for (size_t i = 0; i < heaps.size(); ++i) heaps_.emplace_back(heaps[i], device.heaps[i]);
}

bool DeviceRoom::TryTake(uint32_t heap, Bytes bytes) {
  if (allocations_ >= count_limit_.blocks ||
      allocations_ - being_freed_ + promised_ >= count_limit_.blocks) {
    return false;
  }
  if (!heaps_[heap].TryTake(bytes)) return false;
  ++allocations_;
  return true;
}

void DeviceRoom::Return(uint32_t heap, Bytes bytes) {
  heaps_[heap].Return(bytes);
  --allocations_;
}

bool DeviceRoom::Exchange(uint32_t heap, Bytes taken, Bytes bytes) {
  heaps_[heap].Return(taken);
  if (bytes <= taken) {
    // Even where the driver offers less than is in use by now.
    heaps_[heap].Retake(bytes);
    return true;
  }
  if (heaps_[heap].TryTake(bytes)) return true;
  heaps_[heap].Retake(taken);
  return false;
}

void DeviceRoom::Promise(uint32_t heap, Bytes bytes) {
  heaps_[heap].Promise(bytes);
  ++promised_;
}

void DeviceRoom::BreakPromise(uint32_t heap, Bytes bytes) {
  heaps_[heap].BreakPromise(bytes);
  --promised_;
}

void DeviceRoom::EvictForPromises(Effects& effects) {
  for (uint32_t heap = 0; heap < heaps_.size(); ++heap) {
    const HeapBudget& budget = heaps_[heap];
    while (budget.in_use() - budget.being_freed() + budget.promised() > budget.now()) {
      if (!EvictOne(heap, effects)) break;
    }
  }
  // An allocation is one wherever it lies.
  while (allocations_ - being_freed_ + promised_ > count_limit_.blocks) {
    if (!EvictOne(std::nullopt, effects)) break;
  }
}

bool DeviceRoom::Redeem(uint32_t heap, Bytes promised, Bytes bytes) {
  if (allocations_ >= count_limit_.blocks) return false;
  if (!heaps_[heap].Redeem(promised, bytes)) return false;
  --promised_;
  ++allocations_;
  return true;
}

bool DeviceRoom::CanKeepPromisesOn(uint32_t heap) const {
  const HeapBudget& budget = heaps_[heap];
  const Bytes stays = budget.in_use() - budget.being_freed() - EvictableOn(heap).bytes;
  return stays + budget.promised() <= budget.now() && AllocationsThatStay() <= count_limit_.blocks;
}

DeviceRoom::Evictable DeviceRoom::EvictableOn(uint32_t heap) const {
  const PoolSet::Idle idle = pools_.IdleOn(heap);
  Evictable sum{idle.bytes, idle.blocks};
  for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
    if (device_.memory_types[type].heap != heap) continue;
    const Segments::Unused unused = segments_.UnusedOf(type);
    sum.bytes += unused.bytes;
    sum.blocks += unused.blocks;
  }
  return sum;
}

Bytes DeviceRoom::RoomOn(uint32_t heap) const {
  return heaps_[heap].UncommittedWithout(EvictableOn(heap).bytes);
}

Bytes DeviceRoom::RoomNow(uint32_t heap) const {
  return std::min(heaps_[heap].available(), heaps_[heap].uncommitted());
}

uint64_t DeviceRoom::AllocationsThatStay() const {
  uint64_t stay = allocations_ - being_freed_ + promised_;
  for (uint32_t heap = 0; heap < heaps_.size(); ++heap) {
    const uint64_t evictable = EvictableOn(heap).blocks;
    stay -= std::min(stay, evictable);
  }
  return stay;
}

uint64_t DeviceRoom::AllocationRoom() const {
  const uint64_t stay = AllocationsThatStay();
  return count_limit_.blocks > stay ? count_limit_.blocks - stay : 0;
}

void DeviceRoom::GiveBack(LeasedBlock leased, absl::Time now, Effects& effects) {
  CachingPool& pool = pools_.pool(leased.block.pool);
  for (Block& block : pool.Release(std::move(leased.block), leased.size, ++last_stamp_, now)) {
    StartFreeing(std::move(block), effects);
  }
}

void DeviceRoom::Discard(LeasedBlock leased, NotKeptReason reason, Effects& effects) {
  CachingPool& pool = pools_.pool(leased.block.pool);
  StartFreeing(pool.Discard(std::move(leased.block), leased.size, reason), effects);
}

void DeviceRoom::StartFreeing(Block block, Effects& effects) {
  heaps_[HeapOf(block.block_class.memory_type)].StartFreeing(block.bytes());
  ++being_freed_;
  effects.free.push_back(std::move(block));
}

void DeviceRoom::Freed(const Block& block) {
  heaps_[HeapOf(block.block_class.memory_type)].Freed(block.bytes());
  pools_.pool(block.pool).Freed(block.bytes());
  --being_freed_;
  --allocations_;
  ++freed_;
}

bool DeviceRoom::EvictOne(std::optional<uint32_t> heap, Effects& effects) {
  const auto has_session = [this](TenantId tenant) { return leases_.HasHolder(tenant); };
  if (std::optional<Block> block = pools_.EvictOne(heap, has_session, NotKeptReason::kPressure)) {
    StartFreeing(*std::move(block), effects);
    return true;
  }
  return EvictUnusedSegment(heap, NotKeptReason::kPressure, effects);
}

bool DeviceRoom::EvictUnusedSegment(std::optional<uint32_t> heap, NotKeptReason reason,
                                    Effects& effects) {
  std::optional<uint32_t> oldest;
  for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
    if ((heap && HeapOf(type) != *heap) || !segments_.OldestUnused(type)) continue;
    if (!oldest || *segments_.OldestUnused(type) < *segments_.OldestUnused(*oldest)) oldest = type;
  }
  if (!oldest) return false;
  std::vector<LeasedBlock> blocks = segments_.EvictOne(*oldest);
  for (LeasedBlock& leased : blocks) Discard(std::move(leased), reason, effects);
  return !blocks.empty();
}

void DeviceRoom::EvictAllOn(uint32_t heap, Effects& effects) {
  while (EvictOne(heap, effects)) {
  }
}

absl::StatusOr<TrimResult> DeviceRoom::Trim(const TrimRequest& request, Effects& effects) {
  std::optional<size_t> pool;
  if (request.pool) {
    HB_ASSIGN_OR_RETURN(pool, pools_.Named(*request.pool));
  }
  const size_t before = effects.free.size();
  while (pools_.Retained(pool) > request.target) {
    std::optional<Block> block = pools_.EvictOldest(pool, NotKeptReason::kTrim);
    if (!block) break;
    StartFreeing(*std::move(block), effects);
  }
  // Segments are in the direct row.
  if (request.segments && (!pool || *pool == pools_.direct())) {
    while (pools_.Retained(pool) > request.target &&
           EvictUnusedSegment(std::nullopt, NotKeptReason::kTrim, effects)) {
    }
  }
  TrimResult result;
  for (size_t i = before; i < effects.free.size(); ++i) result.bytes += effects.free[i].bytes();
  result.blocks = effects.free.size() - before;
  return result;
}

void DeviceRoom::EvictExpired(absl::Time since, Effects& effects) {
  while (std::optional<Block> block = pools_.EvictExpired(since)) {
    StartFreeing(*std::move(block), effects);
  }
}

void DeviceRoom::UpdateHeaps(absl::Span<const HeapReport> reports, Effects& effects) {
  for (uint32_t heap = 0; heap < heaps_.size() && heap < reports.size(); ++heap) {
    HeapBudget& budget = heaps_[heap];
    std::string complaint = budget.Update(heap, reports[heap]);
    if (!complaint.empty()) effects.warnings.push_back(std::move(complaint));
    while (budget.in_use() - budget.being_freed() > budget.now()) {
      if (!EvictOne(heap, effects)) break;
    }
  }
}

void DeviceRoom::NoteDriverRefusal(uint32_t heap, Bytes bytes, absl::Time now, Effects& effects) {
  if (!heaps_[heap].NoteDriverRefusal(bytes, now)) return;
  effects.warnings.push_back(absl::StrCat("the driver refused ", FormatBytes(bytes), " of heap ",
                                          heap, " although ", FormatBytes(heaps_[heap].available()),
                                          " of the budget of ", FormatBytes(heaps_[heap].limit()),
                                          " were left; if that goes on, lower --heap-budget"));
}

void DeviceRoom::AddStats(DeviceStats& stats) const {
  for (const HeapBudget& heap : heaps_) stats.heaps.push_back(heap.Stats());
  stats.pools = pools_.Stats();
  stats.allocations = allocations_;
  stats.max_allocations = count_limit_.blocks;
  stats.count_limits = count_limits_;
}

}  // namespace heapbroker

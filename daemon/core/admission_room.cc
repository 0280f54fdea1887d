// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of Admission that makes room: what fits, what can be evicted, and
// what comes back.
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/admission.h"

namespace heapbroker {

absl::Status Admission::CheckEverFits(const Order& order) const {
  if (order.wants.size() > max_allocations_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the device allows ", max_allocations_, " allocations, asked for were ",
                     order.wants.size(), " at once; ask for fewer, larger blocks"));
  }
  std::map<uint32_t, Bytes> sums;
  for (const Want& want : order.wants) {
    Bytes& sum = sums[HeapOf(want)];
    sum = CheckedAdd(sum, want.size).value_or(Bytes::Max());
  }
  for (const auto& [heap, bytes] : sums) {
    const Bytes limit = heaps_[heap].budget.limit();
    if (bytes <= limit) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "heap ", heap, ": ", FormatBytes(bytes), " can never fit in the daemon's budget of ",
        FormatBytes(limit), "; ask for less, or have --heap-budget raised"));
  }
  return absl::OkStatus();
}

Admission::Needs Admission::NeedsOf(const Order& order, const Parts& parts, bool count_hits) const {
  Needs needs;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is_hit() && !count_hits) continue;
    Bytes& bytes = needs.bytes[HeapOf(order.wants[i])];
    bytes = CheckedAdd(bytes, parts[i].exact).value_or(Bytes::Max());
    ++needs.allocations;
  }
  return needs;
}

absl::Status Admission::CheckRoom(const Needs& needs) const {
  uint64_t evictable_blocks = 0;
  for (uint32_t heap = 0; heap < heaps_.size(); ++heap) {
    const PoolSet::Idle idle = pools_.IdleOn(heap);
    Bytes evictable = idle.bytes;
    evictable_blocks += idle.blocks;
    for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
      if (device_.memory_types[type].heap != heap) continue;
      const Segments::Unused unused = segments_.UnusedOf(type);
      evictable += unused.bytes;
      evictable_blocks += unused.blocks;
    }
    const auto need = needs.bytes.find(heap);
    if (need == needs.bytes.end()) continue;
    const HeapBudget& budget = heaps_[heap].budget;
    const Bytes room = budget.available() + heaps_[heap].being_freed + evictable;
    if (need->second <= room) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "heap ", heap, ": ", FormatBytes(need->second), " asked for, ", FormatBytes(room),
        " of the budget of ", FormatBytes(budget.limit()),
        " are free or idle; the rest is held by sessions: ask for less, or try when they released "
        "some"));
  }
  if (needs.allocations + allocations_ > max_allocations_ + being_freed_ + evictable_blocks) {
    return absl::ResourceExhaustedError(absl::StrCat(
        allocations_ - being_freed_ - evictable_blocks, " of ", max_allocations_,
        " allocations of the device are held by sessions, asked for were ", needs.allocations,
        " more; ask for fewer, larger blocks, or try when some were released"));
  }
  return absl::OkStatus();
}

absl::Status Admission::MakeRoom(const Needs& needs, Effects& effects) {
  if (absl::Status status = CheckRoom(needs); !status.ok()) return status;
  for (const auto& [heap, bytes] : needs.bytes) {
    while (bytes > heaps_[heap].budget.available() + heaps_[heap].being_freed) {
      if (!EvictOneOn(heap, effects)) break;
    }
  }
  for (uint32_t heap = 0; heap < heaps_.size(); ++heap) {
    while (needs.allocations + allocations_ > max_allocations_ + being_freed_) {
      if (!EvictOneOn(heap, effects)) break;
    }
  }
  return absl::OkStatus();
}

bool Admission::EvictOneOn(uint32_t heap, Effects& effects) {
  const auto has_session = [this](TenantId tenant) { return leases_.HasHolder(tenant); };
  if (std::optional<Block> block = pools_.EvictOne(heap, has_session, NotKeptReason::kPressure)) {
    StartFreeing(*std::move(block), effects);
    return true;
  }
  for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
    if (device_.memory_types[type].heap != heap) continue;
    std::vector<LeasedBlock> blocks = segments_.EvictOne(type);
    if (blocks.empty()) continue;
    for (LeasedBlock& leased : blocks) {
      Discard(std::move(leased), NotKeptReason::kPressure, effects);
    }
    return true;
  }
  return false;
}

void Admission::EvictEverything(Effects& effects) {
  for (uint32_t heap = 0; heap < heaps_.size(); ++heap) {
    while (EvictOneOn(heap, effects)) {
    }
  }
}

void Admission::StartFreeing(Block block, Effects& effects) {
  heaps_[device_.memory_types[block.block_class.memory_type].heap].being_freed += block.bytes();
  ++being_freed_;
  effects.free.push_back(std::move(block));
}

void Admission::Freed(const Block& block) {
  Heap& heap = heaps_[device_.memory_types[block.block_class.memory_type].heap];
  heap.being_freed -= block.bytes();
  heap.budget.Return(block.bytes());
  pools_.pool(block.pool).Freed(block.bytes());
  --being_freed_;
  --allocations_;
  ++freed_;
}

void Admission::GiveBack(LeasedBlock leased, Effects& effects) {
  CachingPool& pool = pools_.pool(leased.block.pool);
  for (Block& block : pool.Release(std::move(leased.block), leased.size, ++last_stamp_)) {
    StartFreeing(std::move(block), effects);
  }
}

void Admission::Discard(LeasedBlock leased, NotKeptReason reason, Effects& effects) {
  CachingPool& pool = pools_.pool(leased.block.pool);
  StartFreeing(pool.Discard(std::move(leased.block), leased.size, reason), effects);
}

void Admission::AddStats(DeviceStats& stats) const {
  for (size_t i = 0; i < heaps_.size(); ++i) {
    stats.heaps.push_back(heaps_[i].budget.Stats(device_.heaps[i]));
  }
  stats.pools = pools_.Stats();
  stats.allocations = allocations_;
  stats.max_allocations = max_allocations_;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/order_plan.h"

#include <algorithm>

namespace heapbroker {
namespace {

Bytes Sum(Bytes a, Bytes b) { return CheckedAdd(a, b).value_or(Bytes::Max()); }

}  // namespace

std::variant<Plan, Refusal> Planner::Make(const Order& order, ReserveOn reserve) {
  if (order.segment) {
    if (std::optional<Plan> made = MakeSegment(order, reserve, /*promise=*/true)) {
      return *std::move(made);
    }
    return ExplainSegment(order, reserve);
  }
  if (std::optional<Plan> made = MakeOneByOne(order, reserve, /*promise=*/true)) {
    return *std::move(made);
  }
  const auto assigned = AssignHeaps(PiecesOf(order), RoomFor(reserve));
  const auto* heaps = std::get_if<HeapAssignment>(&assigned);
  if (heaps == nullptr) return Explain(order, reserve, std::get<NoAssignment>(assigned).heap);
  if (std::optional<Plan> made = MakeOn(*heaps, order, reserve, /*promise=*/true)) {
    return *std::move(made);
  }
  return Explain(order, reserve, std::nullopt);
}

std::optional<Plan> Planner::MakeAtOnce(const Order& order, ReserveOn reserve) {
  if (order.segment) return MakeSegment(order, reserve, /*promise=*/false);
  if (std::optional<Plan> made = MakeOneByOne(order, reserve, /*promise=*/false)) return made;
  const auto assigned = AssignHeaps(PiecesOf(order), RoomNowFor(reserve));
  const auto* heaps = std::get_if<HeapAssignment>(&assigned);
  return heaps != nullptr ? MakeOn(*heaps, order, reserve, /*promise=*/false) : std::nullopt;
}

// All blocks of a segment are of one type.
std::optional<Plan> Planner::MakeSegment(const Order& order, ReserveOn reserve, bool promise) {
  for (const MemoryTypeChoice& type : order.wants.front().placement->types) {
    std::optional<Plan> made = MakeWith(
        order, reserve, {.use_hits = false, .only_type = type.memory_type, .promise = promise});
    if (made) return made;
  }
  return std::nullopt;
}

// Each block where it lies best of what the ones before it have left.
std::optional<Plan> Planner::MakeOneByOne(const Order& order, ReserveOn reserve, bool promise) {
  if (std::optional<Plan> made = MakeWith(order, reserve, {.promise = promise})) return made;
  if (order.wants.size() == 1) return std::nullopt;
  // What the first blocks were rounded up by may be what the last one lacks. And what
  // the order itself found idle is memory as good as any other: a block that is larger
  // than what it would serve may be what the others lack.
  for (const bool use_hits : {true, false}) {
    std::optional<Plan> thrifty =
        MakeWith(order, reserve, {.use_hits = use_hits, .round = false, .promise = promise});
    if (thrifty) return thrifty;
  }
  return std::nullopt;
}

// One by one, each block took the best place that it found, which may have been the only
// one of a later block.
std::optional<Plan> Planner::MakeOn(const HeapAssignment& heaps, const Order& order,
                                    ReserveOn reserve, bool promise) {
  if (order.wants.size() == 1) return std::nullopt;
  return MakeWith(order, reserve,
                  {.use_hits = false, .round = false, .heaps = &heaps, .promise = promise});
}

std::optional<Plan> Planner::MakeWith(const Order& order, ReserveOn reserve, const Means& means) {
  Plan plan;
  plan.parts.resize(order.wants.size());
  for (size_t i = 0; i < order.wants.size(); ++i) {
    Part& part = plan.parts[i];
    part.exact = order.wants[i].exact();
    part.least = order.wants[i].least();
    if (PlanPart(order, i, reserve, means, part)) continue;
    Undo(plan);
    return std::nullopt;
  }
  if (KeepsPromises(plan)) return plan;
  Undo(plan);
  return std::nullopt;
}

// A later part may have claimed the block that an earlier one was to be had for.
bool Planner::KeepsPromises(const Plan& plan) const {
  return std::all_of(plan.parts.begin(), plan.parts.end(), [this](const Part& part) {
    return part.promised == Bytes() || room_.CanKeepPromisesOn(room_.HeapOf(part.memory_type));
  });
}

bool Planner::Allows(const Means& means, size_t index, uint32_t memory_type) const {
  if (means.only_type && memory_type != *means.only_type) return false;
  return means.heaps == nullptr || (*means.heaps)[index] == room_.HeapOf(memory_type);
}

bool Planner::PlanPart(const Order& order, size_t index, ReserveOn reserve, const Means& means,
                       Part& part) {
  const Want& want = order.wants[index];
  std::optional<PoolChoice> fallback;
  if (!want.fresh && FindInPools(order, index, reserve, means, part, fallback)) return true;
  if (!fallback) {
    for (const MemoryTypeChoice& type : want.placement->types) {
      if (!Allows(means, index, type.memory_type)) continue;
      if (fallback && type.tier < fallback->tier) break;
      const NewBlock as_asked{part.exact, part.least};
      if (TakeNow(room_.pools().direct(), type.memory_type, as_asked, reserve, part)) {
        part.reason = MissReason::kNeverCached;
        return true;
      }
      if (means.promise && !fallback &&
          HasRoom(room_.HeapOf(type.memory_type), part.least, reserve)) {
        fallback = PoolChoice{room_.pools().direct(), type.memory_type, type.tier};
        part.reason = MissReason::kNeverCached;
      }
    }
  }
  if (!fallback) return false;
  part.pool = fallback->pool;
  part.memory_type = fallback->memory_type;
  part.promised = part.least;
  room_.Promise(room_.HeapOf(part.memory_type), part.promised);
  // It takes the want after all.
  const auto passed = std::find_if(part.passed.begin(), part.passed.end(),
                                   [&](const auto& pass) { return pass.first == part.pool; });
  if (passed != part.passed.end()) {
    part.reason = passed->second;
    part.passed.erase(passed);
  }
  return true;
}

// True if a pool takes it now; `fallback` is the first that would once something idle
// is gone. A pool of a lower tier does not go before that one.
bool Planner::FindInPools(const Order& order, size_t index, ReserveOn reserve, const Means& means,
                          Part& part, std::optional<PoolChoice>& fallback) {
  const Want& want = order.wants[index];
  for (const PoolChoice& choice : want.placement->pools) {
    if (!Allows(means, index, choice.memory_type)) continue;
    if (fallback && choice.tier < fallback->tier) return false;
    CachingPool& pool = room_.pools().pool(choice.pool);
    if (want.size > pool.config().limits.max_allocation_size) {
      part.passed.emplace_back(choice.pool, MissReason::kOverSizeLimit);
      continue;
    }
    std::variant<Claim, MissReason> found = MissReason::kNoIdleBlock;
    if (means.use_hits) {
      found = pool.Find(order.tenant, want.ClassOn(choice.memory_type),
                        AcceptableBlocks(matching_, part.exact, device_.max_allocation_size));
    }
    auto* claim = std::get_if<Claim>(&found);
    // What the order's earlier blocks reserved was to go in the place of idle ones.
    if (claim != nullptr && !pool.CanHold(Bytes())) {
      pool.Unclaim(*claim);
      found = MissReason::kAtCapacity;
      claim = nullptr;
    }
    if (claim != nullptr) {
      part.claim = *claim;
      part.pool = choice.pool;
      part.memory_type = choice.memory_type;
      return true;
    }
    bool at_capacity = true;
    for (const NewBlock& block : NewBlocksFor(part, means.round)) {
      if (!pool.CanHold(block.bytes)) continue;
      at_capacity = false;
      if (!TakeNow(choice.pool, choice.memory_type, block, reserve, part)) continue;
      part.reason = std::get<MissReason>(found);
      return true;
    }
    const MissReason reason = at_capacity ? MissReason::kAtCapacity : std::get<MissReason>(found);
    part.passed.emplace_back(choice.pool, reason);
    if (means.promise && !at_capacity && !fallback &&
        HasRoom(room_.HeapOf(choice.memory_type), part.least, reserve)) {
      fallback = choice;
    }
  }
  return false;
}

// What a pool would make of it, the best first.
absl::InlinedVector<Planner::NewBlock, 2> Planner::NewBlocksFor(const Part& part,
                                                                bool round) const {
  absl::InlinedVector<NewBlock, 2> blocks;
  const Bytes rounded = NewBlockSize(matching_, part.exact, device_.max_allocation_size);
  if (round && rounded > part.exact) blocks.push_back({rounded, std::max(rounded, part.least)});
  blocks.push_back({part.exact, part.least});
  return blocks;
}

bool Planner::TakeNow(size_t pool, uint32_t memory_type, const NewBlock& block, ReserveOn reserve,
                      Part& part) {
  const uint32_t heap = room_.HeapOf(memory_type);
  const Reserve kept = reserve(heap);
  if (kept.all || Sum(block.bytes, kept.bytes) > room_.RoomNow(heap)) return false;
  if (kept.allocations > 0 && kept.allocations >= room_.AllocationRoom()) return false;
  if (!room_.TryTake(heap, block.bytes)) return false;
  room_.pools().pool(pool).Reserve(block.bytes);
  part.pool = pool;
  part.memory_type = memory_type;
  part.made_for = block.made_for;
  part.taken = block.bytes;
  return true;
}

bool Planner::HasRoom(uint32_t heap, Bytes bytes, ReserveOn reserve) const {
  const Reserve kept = reserve(heap);
  return !kept.all && Sum(bytes, kept.bytes) <= room_.RoomOn(heap) &&
         kept.allocations < room_.AllocationRoom();
}

}  // namespace heapbroker

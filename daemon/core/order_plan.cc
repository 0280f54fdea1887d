// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/order_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace heapbroker {
namespace {

Bytes Sum(Bytes a, Bytes b) { return CheckedAdd(a, b).value_or(Bytes::Max()); }

}  // namespace

std::optional<Refusal> Planner::NeverFits(const Order& order) const {
  Refusal refusal;
  refusal.kind = RefusalKind::kNeverFits;
  const CountLimit& count = room_.count_limit();
  if (order.wants.size() > count.blocks) {
    refusal.limit = count.kind;
    refusal.value = refusal.largest_now = count.blocks;
    refusal.requested = order.wants.size();
    return refusal;
  }
  // Bytes that can lie on one heap only, and all bytes with all heaps they can lie on.
  std::map<uint32_t, Bytes> bound;
  std::set<uint32_t> heaps;
  Bytes all;
  const auto refuse = [&](uint32_t heap, Bytes limit, Bytes requested) {
    refusal.heap = heap;
    refusal.value = limit.count();
    refusal.requested = requested.count();
    refusal.largest_now = std::min(limit, device_.max_allocation_size).count();
    return refusal;
  };
  for (const Want& want : order.wants) {
    const std::set<uint32_t> own = HeapsOf(want);
    const uint32_t largest = *std::max_element(own.begin(), own.end(), [this](auto a, auto b) {
      return room_.heap(a).limit() < room_.heap(b).limit();
    });
    const Bytes exact = want.least();
    if (exact > device_.max_allocation_size) {
      // By its alignment: a size over it is refused before.
      refusal.limit = LimitKind::kMaxAllocationSize;
      refusal.value = refusal.largest_now = device_.max_allocation_size.count();
      refusal.requested = exact.count();
      return refusal;
    }
    if (exact > room_.heap(largest).limit()) {
      return refuse(largest, room_.heap(largest).limit(), exact);
    }
    if (own.size() == 1) bound[largest] = Sum(bound[largest], exact);
    heaps.insert(own.begin(), own.end());
    all = Sum(all, exact);
  }
  if (order.segment) {
    // One type, and so one heap, has to hold all of it.
    const uint32_t largest = *std::max_element(heaps.begin(), heaps.end(), [this](auto a, auto b) {
      return room_.heap(a).limit() < room_.heap(b).limit();
    });
    if (all > room_.heap(largest).limit()) {
      return refuse(largest, room_.heap(largest).limit(), all);
    }
    return std::nullopt;
  }
  for (const auto& [heap, bytes] : bound) {
    if (bytes > room_.heap(heap).limit()) return refuse(heap, room_.heap(heap).limit(), bytes);
  }
  Bytes limits;
  for (uint32_t heap : heaps) limits = Sum(limits, room_.heap(heap).limit());
  if (all > limits) return refuse(*heaps.begin(), limits, all);
  return std::nullopt;
}

std::variant<Plan, Refusal> Planner::Make(const Order& order, ReserveOn reserve) {
  if (order.segment) {
    // All blocks of a segment are of one type.
    std::optional<Refusal> first;
    for (const MemoryTypeChoice& type : order.wants.front().placement->types) {
      std::variant<Plan, Refusal> made =
          MakeWith(order, reserve, {.use_hits = false, .only_type = type.memory_type});
      if (std::holds_alternative<Plan>(made)) return made;
      if (!first) first = std::get<Refusal>(made);
    }
    return *first;
  }
  std::variant<Plan, Refusal> made = MakeWith(order, reserve, {});
  if (std::holds_alternative<Plan>(made) || order.wants.size() == 1) return made;
  // What the first blocks were rounded up by may be what the last one lacks. And what
  // the order itself found idle is memory as good as any other: a block that is larger
  // than what it would serve may be what the others lack.
  for (const bool use_hits : {true, false}) {
    std::variant<Plan, Refusal> thrifty =
        MakeWith(order, reserve, {.use_hits = use_hits, .round = false});
    if (std::holds_alternative<Plan>(thrifty)) return thrifty;
  }
  // This one tells why, if it fails: it has every idle byte, rounds nothing, and fills
  // the heaps as well as can be.
  return MakeWith(order, reserve, {.use_hits = false, .round = false, .scarce_first = true});
}

// The wants of an order in the sequence in which they are served.
absl::InlinedVector<size_t, 2> Planner::Sequence(const Order& order, const Means& means) const {
  absl::InlinedVector<size_t, 2> sequence(order.wants.size());
  std::iota(sequence.begin(), sequence.end(), size_t{0});
  if (!means.scarce_first) return sequence;
  std::stable_sort(sequence.begin(), sequence.end(), [&](size_t a, size_t b) {
    const size_t places_a = HeapsOf(order.wants[a]).size();
    const size_t places_b = HeapsOf(order.wants[b]).size();
    if (places_a != places_b) return places_a < places_b;
    return order.wants[a].least() > order.wants[b].least();
  });
  return sequence;
}

std::set<uint32_t> Planner::HeapsOf(const Want& want) const {
  std::set<uint32_t> heaps;
  for (const MemoryTypeChoice& type : want.placement->types) {
    heaps.insert(room_.HeapOf(type.memory_type));
  }
  return heaps;
}

std::variant<Plan, Refusal> Planner::MakeWith(const Order& order, ReserveOn reserve,
                                              const Means& means) {
  Plan plan;
  plan.parts.resize(order.wants.size());
  for (const size_t i : Sequence(order, means)) {
    const Want& want = order.wants[i];
    Part& part = plan.parts[i];
    part.exact = want.least();
    if (PlanPart(order.tenant, want, reserve, means, part)) continue;
    Undo(plan);
    return Explain(order, want, reserve);
  }
  if (KeepsPromises(plan)) return plan;
  Undo(plan);
  return Explain(order, order.wants.back(), reserve);
}

// A later part may have claimed the block that an earlier one was to be had for.
bool Planner::KeepsPromises(const Plan& plan) const {
  return std::all_of(plan.parts.begin(), plan.parts.end(), [this](const Part& part) {
    return part.promised == Bytes() || room_.CanKeepPromisesOn(room_.HeapOf(part.memory_type));
  });
}

bool Planner::PlanPart(TenantId tenant, const Want& want, ReserveOn reserve, const Means& means,
                       Part& part) {
  std::optional<PoolChoice> fallback;
  if (!want.fresh && FindInPools(tenant, want, reserve, means, part, fallback)) return true;
  if (!fallback) {
    for (const MemoryTypeChoice& type : want.placement->types) {
      if (means.only_type && type.memory_type != *means.only_type) continue;
      if (fallback && type.tier < fallback->tier) break;
      if (TakeNow(room_.pools().direct(), type.memory_type, part.exact, reserve, part)) {
        part.reason = MissReason::kNeverCached;
        return true;
      }
      if (!fallback && HasRoom(room_.HeapOf(type.memory_type), part.exact, reserve)) {
        fallback = PoolChoice{room_.pools().direct(), type.memory_type, type.tier};
        part.reason = MissReason::kNeverCached;
      }
    }
  }
  if (!fallback) return false;
  part.pool = fallback->pool;
  part.memory_type = fallback->memory_type;
  part.promised = part.exact;
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
bool Planner::FindInPools(TenantId tenant, const Want& want, ReserveOn reserve, const Means& means,
                          Part& part, std::optional<PoolChoice>& fallback) {
  const Bytes largest = device_.max_allocation_size;
  for (const PoolChoice& choice : want.placement->pools) {
    if (fallback && choice.tier < fallback->tier) return false;
    CachingPool& pool = room_.pools().pool(choice.pool);
    if (want.size > pool.config().limits.max_allocation_size) {
      part.passed.emplace_back(choice.pool, MissReason::kOverSizeLimit);
      continue;
    }
    std::variant<Claim, MissReason> found = MissReason::kNoIdleBlock;
    if (means.use_hits) {
      found = pool.Find(tenant, want.ClassOn(choice.memory_type),
                        AcceptableBlocks(matching_, want.exact(), largest));
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
    const Bytes rounded = means.round ? NewBlockSize(matching_, part.exact, largest) : part.exact;
    for (Bytes bytes : {rounded, part.exact}) {
      if (!pool.CanHold(bytes)) continue;
      at_capacity = false;
      if (!TakeNow(choice.pool, choice.memory_type, bytes, reserve, part)) continue;
      part.reason = std::get<MissReason>(found);
      return true;
    }
    const MissReason reason = at_capacity ? MissReason::kAtCapacity : std::get<MissReason>(found);
    part.passed.emplace_back(choice.pool, reason);
    if (!at_capacity && !fallback &&
        HasRoom(room_.HeapOf(choice.memory_type), part.exact, reserve)) {
      fallback = choice;
    }
  }
  return false;
}

bool Planner::TakeNow(size_t pool, uint32_t memory_type, Bytes bytes, ReserveOn reserve,
                      Part& part) {
  const uint32_t heap = room_.HeapOf(memory_type);
  const Reserve kept = reserve(heap);
  if (kept.all || Sum(bytes, kept.bytes) > room_.RoomNow(heap)) return false;
  if (kept.allocations > 0 && kept.allocations >= room_.AllocationRoom()) return false;
  if (!room_.TryTake(heap, bytes)) return false;
  room_.pools().pool(pool).Reserve(bytes);
  part.pool = pool;
  part.memory_type = memory_type;
  part.taken = bytes;
  return true;
}

bool Planner::HasRoom(uint32_t heap, Bytes bytes, ReserveOn reserve) const {
  const Reserve kept = reserve(heap);
  return !kept.all && Sum(bytes, kept.bytes) <= room_.RoomOn(heap) &&
         kept.allocations < room_.AllocationRoom();
}

Refusal Planner::Explain(const Order& order, const Want& want, ReserveOn reserve) const {
  Refusal refusal;
  const auto left_on = [&](uint32_t heap) {
    const Reserve kept = reserve(heap);
    const Bytes room = room_.RoomOn(heap);
    return kept.all || kept.bytes > room ? Bytes() : room - kept.bytes;
  };
  uint32_t best = room_.HeapOf(want.placement->types.front().memory_type);
  for (const MemoryTypeChoice& type : want.placement->types) {
    const uint32_t heap = room_.HeapOf(type.memory_type);
    if (left_on(heap) > left_on(best)) best = heap;
  }
  const Bytes left = left_on(best);
  refusal.largest_now = std::min(left, device_.max_allocation_size).count();
  uint64_t allocations = room_.AllocationRoom();
  allocations -= std::min(allocations, reserve(best).allocations);
  refusal.heap = best;
  Bytes requested;
  for (const Want& each : order.wants) {
    for (const MemoryTypeChoice& type : each.placement->types) {
      if (room_.HeapOf(type.memory_type) != best) continue;
      requested = Sum(requested, each.least());
      break;
    }
  }
  // Bytes are named first where both are short: they are what the caller chose.
  if (allocations < order.wants.size() && requested <= left) {
    refusal.limit = room_.count_limit().kind;
    refusal.heap = std::nullopt;
    refusal.value = room_.count_limit().blocks;
    refusal.in_use = refusal.value - allocations;
    refusal.requested = order.wants.size();
    refusal.free = allocations;
    return refusal;
  }
  const Bytes limit = room_.heap(best).now();
  refusal.value = limit.count();
  refusal.in_use = (limit > left ? limit - left : Bytes()).count();
  refusal.requested = requested.count();
  refusal.free = left.count();
  return refusal;
}

void Planner::Take(const Order& order, Plan& plan, Effects& effects) {
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    Part& part = plan.parts[i];
    if (!part.claim) continue;
    part.hit = room_.pools().pool(part.pool).Take(*part.claim, order.wants[i].size);
    part.claim = std::nullopt;
  }
  for (const Part& part : plan.parts) {
    if (part.taken == Bytes()) continue;
    for (Block& block : room_.pools().pool(part.pool).EvictOverCapacity()) {
      room_.StartFreeing(std::move(block), effects);
    }
  }
  if (plan.is_promise()) room_.EvictForPromises(effects);
}

void Planner::Undo(Plan& plan) {
  // Backwards, so that claims end in the reverse order.
  for (auto part = plan.parts.rbegin(); part != plan.parts.rend(); ++part) {
    if (part->claim) room_.pools().pool(part->pool).Unclaim(*part->claim);
  }
  GiveUp(plan);
}

void Planner::GiveUp(Plan& plan) {
  for (Part& part : plan.parts) {
    const uint32_t heap = room_.HeapOf(part.memory_type);
    if (part.taken != Bytes()) {
      room_.pools().pool(part.pool).Cancel(part.taken);
      room_.Return(heap, part.taken);
    }
    if (part.promised != Bytes()) room_.BreakPromise(heap, part.promised);
    part.taken = part.promised = Bytes();
  }
}

bool Planner::Redeem(Plan& plan, Effects& effects) {
  bool all = true;
  for (Part& part : plan.parts) {
    if (part.promised == Bytes()) continue;
    const bool pooled = part.pool != room_.pools().direct();
    // What the pool had room for may be somebody else's by now.
    if (pooled && !room_.pools().pool(part.pool).CanHold(part.exact)) {
      part.passed.emplace_back(part.pool, MissReason::kAtCapacity);
      part.pool = room_.pools().direct();
    }
    CachingPool& pool = room_.pools().pool(part.pool);
    const Bytes rounded = part.pool == room_.pools().direct()
                              ? part.exact
                              : NewBlockSize(matching_, part.exact, device_.max_allocation_size);
    for (Bytes bytes : {rounded, part.exact}) {
      if (!pool.CanHold(bytes)) continue;
      if (!room_.Redeem(room_.HeapOf(part.memory_type), part.promised, bytes)) continue;
      part.promised = Bytes();
      part.taken = bytes;
      pool.Reserve(bytes);
      for (Block& block : pool.EvictOverCapacity()) room_.StartFreeing(std::move(block), effects);
      break;
    }
    all = all && part.promised == Bytes();
  }
  return all;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/block_size.h"

namespace heapbroker {
namespace {

constexpr MatchingPolicy kMatching;

absl::Status Cancelled() { return absl::CancelledError("nobody waits for this call any more"); }

}  // namespace

Admission::Admission(const DeviceInfo& device, const AdmissionOptions& options,
                     const Leases& leases, Segments& segments)
    : device_(device),
      leases_(leases),
      segments_(segments),
      max_allocations_(options.count_limits.empty() ? UINT64_MAX : options.count_limits[0].blocks),
      pools_(device, options.pools.empty() ? PoolLimits() : options.pools[0].limits) {
  for (const HeapLimit& limit : options.heaps) heaps_.push_back({HeapBudget(limit.bytes), Bytes()});
}

std::optional<Admission::Finished> Admission::Submit(Order order, Effects& effects) {
  if (absl::Status status = CheckEverFits(order); !status.ok()) {
    return Finished{std::move(order), std::move(status)};
  }
  Waiting waiting{std::move(order), false, 0};
  Attempt attempt = Try(
      waiting, [this](uint32_t heap) { return wants_waiting_.contains(heap); }, effects);
  if (auto* blocks = std::get_if<Blocks>(&attempt)) {
    return Finished{std::move(waiting.order), std::move(*blocks)};
  }
  if (auto* status = std::get_if<absl::Status>(&attempt)) {
    return Finished{std::move(waiting.order), std::move(*status)};
  }
  if (auto* fill = std::get_if<FillOrder>(&attempt)) {
    effects.fill.push_back(std::move(*fill));
  } else {
    Enqueue(waiting_.end(), std::move(waiting));
  }
  return std::nullopt;
}

void Admission::Enqueue(std::list<Waiting>::iterator before, Waiting waiting) {
  for (const Want& want : waiting.order.wants) ++wants_waiting_[HeapOf(want)];
  waiting_.insert(before, std::move(waiting));
}

std::list<Admission::Waiting>::iterator Admission::Dequeue(std::list<Waiting>::iterator at) {
  for (const Want& want : at->order.wants) {
    const auto count = wants_waiting_.find(HeapOf(want));
    if (--count->second == 0) wants_waiting_.erase(count);
  }
  return waiting_.erase(at);
}

std::vector<Admission::Finished> Admission::Pump(Effects& effects) {
  std::vector<Finished> finished;
  std::set<uint32_t> blocked;
  const auto is_blocked = [&blocked](uint32_t heap) { return blocked.contains(heap); };
  // Once the first orders wait for every heap that is waited for, none behind
  // them can come in: they are not looked at.
  for (auto it = waiting_.begin();
       it != waiting_.end() && blocked.size() < wants_waiting_.size();) {
    Attempt attempt = Try(*it, is_blocked, effects);
    if (std::holds_alternative<MustWait>(attempt)) {
      for (const Want& want : it->order.wants) blocked.insert(HeapOf(want));
      ++it;
      continue;
    }
    Order order = it->order;
    it = Dequeue(it);
    if (auto* fill = std::get_if<FillOrder>(&attempt)) {
      effects.fill.push_back(std::move(*fill));
    } else if (auto* blocks = std::get_if<Blocks>(&attempt)) {
      finished.push_back({std::move(order), std::move(*blocks)});
    } else {
      finished.push_back({std::move(order), std::get<absl::Status>(std::move(attempt))});
    }
  }
  return finished;
}

Admission::Attempt Admission::Try(const Waiting& waiting, IsBlocked is_blocked, Effects& effects) {
  const Order& order = waiting.order;
  Parts parts = FindIdle(order);
  const Needs needs = NeedsOf(order, parts, false);
  const bool must_queue =
      freed_ < waiting.after_frees ||
      std::any_of(needs.bytes.begin(), needs.bytes.end(),
                  [is_blocked](const auto& need) { return is_blocked(need.first); });
  if (needs.allocations == 0 || (!must_queue && ReserveMisses(order, parts))) {
    return Start(waiting, std::move(parts));
  }
  if (must_queue) {
    PutBackHits(order, parts);
    return MustWait{};
  }
  // First without touching what this order itself found idle; if that is not
  // enough, its own hits are memory as good as any other.
  absl::Status room = MakeRoom(needs, effects);
  PutBackHits(order, parts);
  if (!room.ok()) room = MakeRoom(NeedsOf(order, parts, true), effects);
  if (!room.ok()) {
    CountRequests(waiting, parts);
    return room;
  }
  return MustWait{};
}

// Takes over `parts`, in which every miss has its reservation.
Admission::Attempt Admission::Start(const Waiting& waiting, Parts parts) {
  const Order& order = waiting.order;
  CountRequests(waiting, parts);
  FillOrder fill{order.id, {}};
  std::vector<size_t> items;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const Want& want = order.wants[i];
    if (part.is_hit() && !want.zeroed) continue;
    FillItem item{BlockClass{want.memory_type}, part.reserved, part.exact, std::nullopt};
    if (part.is_hit()) item.reuse = std::get<IdleBlock>(part.found).block.memory;
    fill.items.push_back(std::move(item));
    items.push_back(i);
  }
  if (!items.empty()) {
    in_work_.emplace(order.id,
                     InWork{order, std::move(parts), std::move(items), waiting.retried, false});
    return fill;
  }
  Blocks blocks;
  for (size_t i = 0; i < parts.size(); ++i) {
    blocks.push_back({LeaseAnew(std::move(parts[i])), order.wants[i].size});
  }
  return blocks;
}

Admission::Parts Admission::FindIdle(const Order& order) {
  Parts parts;
  for (const Want& want : order.wants) {
    Part part;
    // Page-aligned whatever the driver does with the size.
    part.exact = AlignUp(want.size, std::max(want.alignment, Bytes(1))).value_or(want.size);
    if (want.fresh) {
      part.pool = pools_.direct();
      part.found = MissReason::kNeverCached;
    } else {
      part.pool = pools_.PoolFor(want.memory_type);
      part.found = pools_.pool(part.pool).Acquire(
          order.tenant, BlockClass{want.memory_type},
          AcceptableBlocks(kMatching, part.exact, device_.max_allocation_size), want.size);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

bool Admission::ReserveMisses(const Order& order, Parts& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (part.is_hit()) continue;
    HeapBudget& budget = heaps_[HeapOf(order.wants[i])].budget;
    const Bytes rounded = order.wants[i].fresh
                              ? part.exact
                              : NewBlockSize(kMatching, part.exact, device_.max_allocation_size);
    for (Bytes bytes : {rounded, part.exact}) {
      if (part.reserved != Bytes() || allocations_ >= max_allocations_) break;
      if (!budget.TryTake(bytes)) continue;
      part.reserved = bytes;
      pools_.pool(part.pool).Reserve(bytes);
      ++allocations_;
    }
    if (part.reserved == Bytes()) {
      CancelReservations(order, parts);
      return false;
    }
  }
  return true;
}

void Admission::CancelReservations(const Order& order, Parts& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (part.is_hit() || part.reserved == Bytes()) continue;
    pools_.pool(part.pool).Cancel(part.reserved);
    heaps_[HeapOf(order.wants[i])].budget.Return(part.reserved);
    --allocations_;
    part.reserved = Bytes();
  }
}

void Admission::PutBackHits(const Order& order, Parts& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_hit()) continue;
    pools_.pool(parts[i].pool)
        .PutBack(std::get<IdleBlock>(std::move(parts[i].found)), order.wants[i].size);
    parts[i].found = MissReason::kOnlyTooSmall;
  }
}

void Admission::CountRequests(const Waiting& waiting, const Parts& parts) {
  if (waiting.retried) return;  // Was counted when it was tried first.
  for (const Part& part : parts) {
    std::optional<MissReason> reason;
    if (!part.is_hit()) reason = std::get<MissReason>(part.found);
    pools_.pool(part.pool).CountRequest(reason);
  }
}

absl::Status Admission::AdjustReservation(OrderId order, size_t item, Bytes bytes) {
  InWork& work = in_work_.at(order);
  const size_t index = work.items[item];
  Part& part = work.parts[index];
  const uint32_t heap = HeapOf(work.order.wants[index]);
  HeapBudget& budget = heaps_[heap].budget;
  budget.Return(part.reserved);
  if (!budget.TryTake(bytes)) {
    (void)budget.TryTake(part.reserved);  // Was just returned.
    return absl::ResourceExhaustedError(
        absl::StrCat("heap ", heap, ": the driver needs ", FormatBytes(bytes),
                     " for this request, and ", FormatBytes(budget.available()),
                     " of the budget of ", FormatBytes(budget.limit()), " are left"));
  }
  CachingPool& pool = pools_.pool(part.pool);
  pool.Cancel(part.reserved);
  pool.Reserve(bytes);
  part.reserved = bytes;
  return absl::OkStatus();
}

std::optional<Admission::Finished> Admission::EndFill(OrderId id,
                                                      std::vector<DeviceAllocation> made,
                                                      absl::Status status, Effects& effects) {
  auto node = in_work_.extract(id);
  InWork& work = node.mapped();
  Order& order = work.order;
  // Every part becomes a block or is given up, whatever else happens.
  std::vector<std::optional<Block>> blocks(work.parts.size());
  for (size_t i = 0; i < work.parts.size(); ++i) {
    if (work.parts[i].is_hit()) blocks[i] = LeaseAnew(work.parts[i]);
  }
  for (size_t item = 0; item < made.size(); ++item) {
    const size_t i = work.items[item];
    if (blocks[i]) continue;  // Was cleared.
    Part& part = work.parts[i];
    blocks[i] = MakeBlock(order, order.wants[i], part.pool, std::move(made[item]));
    pools_.pool(part.pool).Commit(part.reserved, *blocks[i], order.wants[i].size);
    part.reserved = Bytes();
  }
  CancelReservations(order, work.parts);
  Blocks leased;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i]) continue;
    const bool failed_clear = made.size() < work.items.size() && work.items[made.size()] == i;
    LeasedBlock one{*std::move(blocks[i]), order.wants[i].size};
    if (failed_clear) {
      Discard(std::move(one), NotKeptReason::kUncleanEnd, effects);
    } else {
      leased.push_back(std::move(one));
    }
  }
  if (status.ok() && !work.cancelled) return Finished{std::move(order), std::move(leased)};
  const bool retry = WorthRetrying(work, status);
  Unmake(order, std::move(leased), effects);
  if (retry) {
    // The driver says that there is no memory although the budget has some:
    // what is idle goes, and the order is tried once more when it is gone.
    while (EvictOneOn(HeapOf(order.wants.front()), effects)) {
    }
    Enqueue(waiting_.begin(), {std::move(order), true, freed_ + being_freed_});
    return std::nullopt;
  }
  return Finished{std::move(order), work.cancelled ? Cancelled() : std::move(status)};
}

bool Admission::WorthRetrying(const InWork& work, const absl::Status& status) const {
  if (work.retried || work.cancelled || !absl::IsResourceExhausted(status)) return false;
  const uint32_t heap = HeapOf(work.order.wants.front());
  if (pools_.IdleOn(heap).blocks > 0 || heaps_[heap].being_freed > Bytes()) return true;
  for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
    if (device_.memory_types[type].heap == heap && segments_.UnusedOf(type).blocks > 0) return true;
  }
  return false;
}

void Admission::Unmake(const Order& order, Blocks blocks, Effects& effects) {
  for (LeasedBlock& leased : blocks) {
    if (order.segment) {
      Discard(std::move(leased), NotKeptReason::kNeverCached, effects);
    } else {
      GiveBack(std::move(leased), effects);
    }
  }
}

std::vector<Admission::Finished> Admission::Cancel(SessionId session, std::optional<CallId> call) {
  const auto meant = [session, call](const Order& order) {
    return order.session == session && (!call || order.call == *call);
  };
  for (auto& [id, work] : in_work_) {
    if (meant(work.order)) work.cancelled = true;
  }
  std::vector<Finished> finished;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!meant(it->order)) {
      ++it;
      continue;
    }
    finished.push_back({it->order, Cancelled()});
    it = Dequeue(it);
  }
  return finished;
}

Block Admission::LeaseAnew(Part hit) {
  Block block = std::get<IdleBlock>(std::move(hit.found)).block;
  block.id = BlockId(++last_block_);
  return block;
}

Block Admission::MakeBlock(const Order& order, const Want& want, size_t pool,
                           DeviceAllocation memory) {
  return Block{BlockId(++last_block_), order.tenant, BlockClass{want.memory_type}, pool,
               std::move(memory)};
}

}  // namespace heapbroker

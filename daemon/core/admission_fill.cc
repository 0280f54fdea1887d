// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of Admission that hears from the device.
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/admission.h"

namespace heapbroker {

absl::Status Admission::AdjustReservation(OrderId order, size_t item, const BufferNeeds& needs,
                                          Effects& effects) {
  Job& job = jobs_.at(order);
  Part& part = job.plan.parts[job.items[item]];
  const Bytes bytes = needs.allocation;
  const uint32_t heap = room_.HeapOf(part.memory_type);
  Want& want = job.order.wants[job.items[item]];
  part.made_for = needs.size;
  job.learned = false;
  if (bytes != part.taken && !room_.Exchange(heap, part.taken, bytes)) {
    // Compared with what the plan saw to: what the size as asked for needs is news, too,
    // although the rounded size was refused as much before. The last size that the
    // device was asked about is the least that will do.
    job.learned = bytes > part.least;
    want.needs = bytes;
    Refusal refusal;
    refusal.heap = heap;
    refusal.value = room_.heap(heap).now().count();
    const Bytes room = CheckedAdd(room_.RoomOn(heap), part.taken).value_or(Bytes::Max());
    refusal.free = room.count();
    refusal.largest_now = std::min(room, device_.max_allocation_size).count();
    refusal.in_use = refusal.value - std::min(refusal.value, refusal.free);
    refusal.requested = bytes.count();
    return RefusalStatus(refusal, kDriverPads);
  }
  want.needs = std::min(want.needs, bytes);
  if (bytes == part.taken) return absl::OkStatus();
  room_.pools().pool(part.pool).Cancel(part.taken);
  // What the driver pads by may be more than the pool may have.
  if (!room_.pools().pool(part.pool).CanHold(bytes)) part.pool = room_.pools().direct();
  CachingPool& pool = room_.pools().pool(part.pool);
  pool.Reserve(bytes);
  for (Block& block : pool.EvictOverCapacity()) room_.StartFreeing(std::move(block), effects);
  part.taken = bytes;
  return absl::OkStatus();
}

std::optional<Admission::Finished> Admission::EndFill(OrderId id, Filled filled, Effects& effects) {
  Job job = Extract(jobs_.find(id));
  const size_t failed_item = filled.made.size();
  Blocks blocks = TakeMade(job, std::move(filled.made), effects);
  if (filled.status.ok() && !job.cancelled) return Finish(std::move(job.order), std::move(blocks));
  Unmake(job.order, std::move(blocks), effects);
  if (job.cancelled) return Finish(std::move(job.order), Cancelled());
  const Part& failed = job.plan.parts[job.items[failed_item]];
  const uint32_t heap = room_.HeapOf(failed.memory_type);
  // Not where the device failed at what came after that.
  const bool learned = job.learned && RefusalOf(filled.status).has_value();
  if (learned || (filled.out_of_memory && WorthRetrying(job, failed))) {
    Job again{std::move(job.order)};
    again.state = State::kRetrying;
    again.counted = true;
    again.retried = job.retried;
    // The device needs more than was taken: from here on that is what the order asks
    // for. Or there is no memory although the budget has some: what is idle goes, and
    // the order is tried once more when it is gone.
    if (!learned) {
      room_.EvictAllOn(heap, effects);
      again.retried = true;
      again.after_frees = room_.freed() + room_.being_freed();
    }
    Insert(std::move(again));
    return std::nullopt;
  }
  return Finish(std::move(job.order), Explain(failed, std::move(filled), effects));
}

// Every part of the plan becomes a block or is given up, whatever else happens.
Admission::Blocks Admission::TakeMade(Job& job, std::vector<DeviceAllocation> made,
                                      Effects& effects) {
  const Order& order = job.order;
  const absl::Time now = clock_.Now();
  const size_t failed_item = made.size();
  for (size_t item = 0; item < made.size(); ++item) {
    Part& part = job.plan.parts[job.items[item]];
    if (part.hit) continue;  // Was cleared.
    const Want& want = order.wants[job.items[item]];
    Block block{BlockId(), order.tenant,          want.ClassOn(part.memory_type),
                part.pool, std::move(made[item]), part.made_for};
    room_.NoteDriverAllocation(room_.HeapOf(part.memory_type), part.made_for);
    room_.pools().pool(part.pool).Commit(part.taken, block, want.size);
    part.taken = Bytes();
    part.hit = std::move(block);
  }
  planner_.GiveUp(job.plan);
  Blocks blocks;
  for (size_t i = 0; i < job.plan.parts.size(); ++i) {
    Part& part = job.plan.parts[i];
    if (!part.hit) continue;
    LeasedBlock leased{*std::move(part.hit), order.wants[i].size, order.request, now};
    leased.block.id = NextBlock();
    // Of a block that could not be cleared nobody knows what it holds.
    if (failed_item < job.items.size() && job.items[failed_item] == i) {
      room_.Discard(std::move(leased), NotKeptReason::kUncleanEnd, effects);
    } else {
      blocks.push_back(std::move(leased));
    }
  }
  return blocks;
}

// The device had no memory for it. All that is idle on its heap goes for that once, but
// not for a size that it did not help a moment ago.
bool Admission::WorthRetrying(const Job& job, const Part& failed) const {
  const uint32_t heap = room_.HeapOf(failed.memory_type);
  return !job.retried && (room_.HasEvictable(heap) || room_.being_freed() > 0) &&
         !room_.heap(heap).WasRefusedLately(failed.exact, clock_.Now());
}

// What the device said, as what it means to whoever asked.
absl::Status Admission::Explain(const Part& failed, Filled filled, Effects& effects) {
  Refusal refusal;
  refusal.requested = failed.exact.count();
  const uint32_t heap = room_.HeapOf(failed.memory_type);
  if (absl::IsOutOfRange(filled.status)) {
    // What the driver pads it to is more than it has allocations, or buffers, of.
    refusal.kind = RefusalKind::kNeverFits;
    refusal.limit = LimitKind::kMaxAllocationSize;
    refusal.value = device_.max_allocation_size.count();
    return RefusalStatus(refusal, filled.status.message());
  }
  if (!absl::IsResourceExhausted(filled.status)) return filled.status;
  // The budget, or what the process is out of, says it itself.
  const std::optional<Refusal> known = RefusalOf(filled.status);
  if (known && known->limit != LimitKind::kDriver) return filled.status;
  if (filled.out_of_memory) {
    room_.NoteDriverRefusal(heap, failed.exact, clock_.Now(), effects);
  }
  refusal.limit = LimitKind::kDriver;
  refusal.heap = heap;
  refusal.value = room_.heap(heap).now().count();
  refusal.free = room_.RoomOn(heap).count();
  refusal.in_use = refusal.value - std::min(refusal.value, refusal.free);
  return RefusalStatus(refusal, filled.status.message());
}

void Admission::GiveUpPlan(Job& job, Effects& effects) {
  Blocks hits;
  for (size_t i = 0; i < job.plan.parts.size(); ++i) {
    Part& part = job.plan.parts[i];
    if (!part.hit) continue;
    hits.push_back({*std::move(part.hit), job.order.wants[i].size, {}, {}});
  }
  planner_.GiveUp(job.plan);
  Unmake(job.order, std::move(hits), effects);
  job.plan = {};
}

void Admission::Unmake(const Order& order, Blocks blocks, Effects& effects) {
  for (LeasedBlock& leased : blocks) {
    if (order.segment) {
      room_.Discard(std::move(leased), NotKeptReason::kNeverCached, effects);
    } else {
      room_.GiveBack(std::move(leased), clock_.Now(), effects);
    }
  }
}

}  // namespace heapbroker

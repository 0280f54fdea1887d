// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of ReferenceModel that judges.
#include <algorithm>

#include "daemon/core/memory_type_choice.h"
#include "gtest/gtest.h"
#include "tests/model/reference_model.h"

namespace heapbroker {
namespace {

Bytes LessOrNothing(Bytes a, Bytes b) { return a > b ? a - b : Bytes(); }

// No device of a test has as much: a counter beyond it went below zero.
constexpr Bytes kAbsurd(uint64_t{1} << 50);

}  // namespace

void ReferenceModel::Check(const DeviceStats& stats, Outside outside) {
  NoteFills(stats, outside);
  CheckIdle(stats, outside);
  stats_ = stats;
  CheckPools(stats);
  CheckHeaps(stats);
  uint64_t leased = 0, idle = 0;
  Bytes kept, total, live;
  for (const PoolStats& pool : stats.pools) {
    leased += pool.leased_blocks;
    idle += pool.idle_blocks;
    kept += pool.leased + pool.idle + pool.being_freed;
    total += pool.total();
  }
  for (const HeapSums& heap : heap_sums_) live += heap.live;
  // Every allocation of the device is leased, idle or on its way to be freed.
  EXPECT_EQ(leased + idle + outside.frees, memory_.size());
  EXPECT_EQ(kept, live);
  EXPECT_GE(stats.allocations, memory_.size());
  EXPECT_LE(stats.allocations, stats.max_allocations);
  EXPECT_EQ(stats.segment_bytes, segment_bytes_);
  Bytes in_use;
  for (const HeapStats& heap : stats.heaps) in_use += heap.in_use;
  EXPECT_EQ(in_use, total);
  if (calls_.empty()) EXPECT_EQ(stats.allocations, memory_.size());
  // Dear, and of the kind that stays wrong.
  if (++checks_ % 16 != 0) return;
  uint64_t waiting = SureFills();
  for (const HeapStats& heap : stats.heaps) waiting += heap.waiting_requests;
  EXPECT_LE(waiting, Orders().size()) << "something is at work for nobody";
}

// A driver is asked what it offers by a job for no order. Taken for one, it would hide an
// order that was promised memory. The core asks where a heap has less than its limit and
// an order lacks it: one that is refused, or that is in a queue. One operation asks at
// most once.
void ReferenceModel::NoteFills(const DeviceStats& stats, const Outside& outside) {
  if (outside.filled) may_ask_driver_.pop_front();
  bool has_less = false;
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) {
    has_less |= std::min(now_before_[heap], NowOn(heap)) < options_.heaps[heap].bytes;
  }
  bool lacked = !refused_.empty() || stats.requests.queued != stats_.requests.queued;
  for (const HeapStats& heap : stats_.heaps) lacked |= heap.waiting_requests > 0;
  while (may_ask_driver_.size() < outside.fills) {
    const bool last = may_ask_driver_.size() + 1 == outside.fills;
    may_ask_driver_.push_back(last && has_less && lacked);
  }
  EXPECT_EQ(may_ask_driver_.size(), outside.fills);
}

void ReferenceModel::CheckPools(const DeviceStats& stats) const {
  ASSERT_EQ(stats.pools.size(), pool_sums_.size());
  for (size_t i = 0; i < stats.pools.size(); ++i) {
    const PoolStats& pool = stats.pools[i];
    const PoolSums& sums = pool_sums_[i];
    EXPECT_LT(pool.total(), kAbsurd) << pool.name;
    EXPECT_LE(pool.rounding, pool.leased) << pool.name;
    EXPECT_EQ(pool.requests, pool.hits + pool.total_misses()) << pool.name;
    EXPECT_GE(pool.peak_total, pool.total()) << pool.name;
    EXPECT_GE(pool.peak_leased, pool.leased) << pool.name;
    EXPECT_GE(pool.peak_idle, pool.idle) << pool.name;
    EXPECT_LE(pool.largest_idle_block, pool.idle) << pool.name;
    EXPECT_EQ(pool.idle_blocks == 0, pool.idle == Bytes()) << pool.name;
    EXPECT_LE(pool.idle_blocks, pool.limits.max_free_allocation_count) << pool.name;
    EXPECT_LE(pool.reserved + pool.leased + pool.idle, pool.limits.max_allocation_capacity)
        << pool.name;
    // Idle blocks that a waiting order took are leased to nobody yet.
    EXPECT_GE(pool.leased, sums.leased) << pool.name;
    EXPECT_GE(pool.leased_blocks, sums.blocks) << pool.name;
    if (!calls_.empty() && i + 1 < stats.pools.size()) continue;
    EXPECT_EQ(pool.leased, sums.leased) << pool.name;
    EXPECT_EQ(pool.leased_blocks, sums.blocks) << pool.name;
    if (i + 1 < stats.pools.size()) {
      EXPECT_EQ(pool.rounding, sums.rounding) << pool.name;
      EXPECT_EQ(pool.reserved, Bytes()) << pool.name;
    }
  }
  EXPECT_EQ(stats.pools.back().idle, Bytes());
}

void ReferenceModel::CheckHeaps(const DeviceStats& stats) const {
  std::vector<Bytes> reserved(device_.heaps.size());
  for (size_t i = 0; i < options_.pools.size(); ++i) {
    reserved[HeapOf(options_.pools[i].memory_type)] += stats.pools[i].reserved;
  }
  for (uint32_t i = 0; i < device_.heaps.size(); ++i) {
    const HeapStats& heap = stats.heaps[i];
    EXPECT_LE(heap.in_use, heap.budget) << "heap " << i;
    EXPECT_GE(heap.peak_in_use, heap.in_use) << "heap " << i;
    // Less by what is promised and is not being freed.
    const Bytes left = LessOrNothing(NowOn(i), heap.in_use);
    EXPECT_LE(heap.available, left) << "heap " << i;
    if (heap.available < left) EXPECT_FALSE(NonePromised()) << "heap " << i;
    EXPECT_GE(heap.in_use, heap_sums_[i].live + reserved[i]) << "heap " << i;
    EXPECT_LE(heap.in_use, heap_sums_[i].live + reserved[i] + stats.pools.back().reserved)
        << "heap " << i;
    Bytes idle;
    if (const auto found = idle_in_clients_.find(i); found != idle_in_clients_.end()) {
      for (const auto& [session, bytes] : found->second) idle += bytes;
    }
    EXPECT_EQ(heap.idle_in_clients, idle) << "heap " << i;
  }
}

ReferenceModel::Need ReferenceModel::NeedOf(Bytes size, const MemoryWish& wish,
                                            std::optional<HandleType> handle_type) const {
  Need need{size, AlignUp(size, granularity_).value() + extra_, {}, {}};
  const auto choices = ChooseMemoryTypes(device_, wish, handle_type);
  if (!choices.ok()) return need;
  for (const MemoryTypeChoice& choice : choices->types) {
    need.types.push_back(choice.memory_type);
    need.heaps.insert(HeapOf(choice.memory_type));
  }
  return need;
}

std::vector<ReferenceModel::Need> ReferenceModel::NeedsOf(const Call& call) const {
  std::vector<Need> needs;
  if (const auto* allocate = std::get_if<AllocateCall>(&call.what)) {
    for (const BlockRequest& block : allocate->request.blocks) {
      const Bytes exact = AlignUp(block.size, std::max(block.alignment, Bytes(1))).value();
      needs.push_back(NeedOf(exact, block.memory, block.handle_type));
    }
    return needs;
  }
  const OpenSegmentRequest& open = std::get<OpenCall>(call.what).request;
  for (Bytes left = open.size; left > Bytes();) {
    const Bytes unit(device_.max_allocation_size.count() / MiB(2).count() * MiB(2).count());
    const Bytes part = left <= device_.max_allocation_size ? left : unit;
    needs.push_back(NeedOf(part, open.memory, open.handle_type));
    left -= part;
  }
  return needs;
}

bool ReferenceModel::NeverFits(const std::vector<Need>& needs, bool padded, bool segment) const {
  Room empty;
  for (const HeapLimit& heap : options_.heaps) empty.heaps.push_back(heap.bytes);
  empty.blocks = stats_.max_allocations;
  for (const Need& need : needs) {
    if ((padded ? need.padded : need.bytes) > device_.max_allocation_size) return true;
  }
  return segment ? !FitsOnOneHeap(needs, empty, padded) : !Fits(needs, empty, padded);
}

std::vector<const ReferenceModel::Call*> ReferenceModel::Orders() const {
  std::vector<const Call*> orders;
  std::set<std::pair<TenantId, std::string>> names;
  for (const auto& [id, segment] : segments_) names.emplace(segment.tenant, segment.name);
  for (const auto& [id, call] : calls_) {
    if (const auto* open = std::get_if<OpenCall>(&call.what)) {
      // One for each segment that is not there yet.
      if (open->request.mode != OpenMode::kCreateOrAttach) continue;
      if (!names.emplace(call.tenant, open->request.name).second) continue;
    }
    orders.push_back(&call);
  }
  return orders;
}

// What is surely not to be had: in use, taken by orders that wait for the device.
ReferenceModel::Room ReferenceModel::Committed() const {
  Room room;
  for (const HeapSums& heap : heap_sums_) room.heaps.push_back(heap.used);
  room.blocks = used_blocks_ + (stats_.allocations - memory_.size());
  for (size_t i = 0; i < stats_.pools.size(); ++i) {
    const PoolStats& pool = stats_.pools[i];
    if (i < options_.pools.size()) {
      room.heaps[HeapOf(options_.pools[i].memory_type)] +=
          pool.reserved + (pool.leased - pool_sums_[i].leased);
      room.blocks += pool.leased_blocks - pool_sums_[i].blocks;
    } else {
      // Of any heap.
      for (Bytes& heap : room.heaps) heap += pool.reserved;
      room.exact = pool.reserved == Bytes() || room.heaps.size() == 1;
    }
  }
  return room;
}

ReferenceModel::Room ReferenceModel::RoomFor(const RefusedCall& refused) const {
  Room room = Committed();
  // Who is late waits for nothing that the device has yet to free.
  if (IsLate(refused)) {
    for (uint32_t heap = 0; heap < room.heaps.size(); ++heap) {
      const Bytes left = stats_.heaps[heap].available;
      room.heaps[heap] =
          std::max(room.heaps[heap], LessOrNothing(std::min(now_before_[heap], NowOn(heap)), left));
    }
    room.blocks = std::max(room.blocks, stats_.allocations);
    room.exact = false;
  }
  size_t queued = 0;
  for (const HeapStats& heap : stats_.heaps) queued += heap.waiting_requests;
  std::vector<const Call*> others = Orders();
  // Who was refused because the device was late gave up what it was promised.
  const bool none_promised =
      NonePromised() && std::none_of(refused_.begin(), refused_.end(), [&](const auto& other) {
        return other.call != refused.call && IsLate(other);
      });
  for (size_t i = 0; i < ended_.size(); ++i) {
    if (i != refused.call) others.push_back(&ended_[i]);
  }
  std::vector<Bytes> promised(room.heaps.size()), kept(room.heaps.size());
  uint64_t promised_blocks = 0, kept_blocks = 0;
  for (size_t heap = 0; heap < room.heaps.size(); ++heap) {
    std::vector<Bytes> needed;
    for (const Call* other : others) {
      Bytes& bytes = needed.emplace_back();
      for (const Need& need : other->needs) {
        // An order that the device was asked for once is promised what that needs.
        if (need.heaps.contains(heap)) bytes += need.padded;
      }
      promised[heap] += bytes;
    }
    // One order for each queue may have its turn.
    std::sort(needed.rbegin(), needed.rend());
    for (size_t i = 0; i < needed.size() && i < room.heaps.size(); ++i) kept[heap] += needed[i];
  }
  std::vector<uint64_t> blocks;
  for (const Call* other : others) blocks.push_back(other->needs.size());
  std::sort(blocks.rbegin(), blocks.rend());
  for (size_t i = 0; i < blocks.size(); ++i) {
    promised_blocks += blocks[i];
    if (i < room.heaps.size()) kept_blocks += blocks[i];
  }
  const bool none_kept = queued == 0 && ended_.size() <= 1;
  for (uint32_t heap = 0; heap < room.heaps.size(); ++heap) {
    Bytes gone = room.heaps[heap];
    if (!none_promised) gone += promised[heap];
    if (!none_kept) gone += kept[heap];
    room.heaps[heap] = LessOrNothing(std::min(now_before_[heap], NowOn(heap)), gone);
  }
  uint64_t gone = room.blocks;
  if (!none_promised) gone += promised_blocks;
  if (!none_kept) gone += kept_blocks;
  room.blocks = stats_.max_allocations > gone ? stats_.max_allocations - gone : 0;
  room.exact = room.exact && none_promised && none_kept;
  return room;
}

bool ReferenceModel::Fits(const std::vector<Need>& needs, Room room, bool padded) {
  return needs.size() <= room.blocks && FitsFrom(0, needs, room, padded);
}

// Every way there is.
bool ReferenceModel::FitsFrom(size_t first, const std::vector<Need>& needs, Room& room,
                              bool padded) {
  if (first == needs.size()) return true;
  const Need& need = needs[first];
  const Bytes bytes = padded ? need.padded : need.bytes;
  for (uint32_t heap : need.heaps) {
    if (bytes > room.heaps[heap]) continue;
    room.heaps[heap] -= bytes;
    const bool fits = FitsFrom(first + 1, needs, room, padded);
    room.heaps[heap] += bytes;
    if (fits) return true;
  }
  return false;
}

// All blocks of a segment are of one memory type.
bool ReferenceModel::FitsOnOneHeap(const std::vector<Need>& needs, const Room& room, bool padded) {
  return std::any_of(needs.front().heaps.begin(), needs.front().heaps.end(), [&](uint32_t heap) {
    std::vector<Need> bound = needs;
    for (Need& need : bound) need.heaps = {heap};
    return Fits(bound, room, padded);
  });
}

void ReferenceModel::CheckRefusals() {
  for (const RefusedCall& refused : refused_) CheckRefusal(refused);
}

void ReferenceModel::CheckRefusal(const RefusedCall& refused) {
  const Refusal& refusal = refused.refusal;
  ++seen_.refusals;
  const std::vector<Need>& needs = ended_[refused.call].needs;
  const bool segment = std::holds_alternative<OpenCall>(ended_[refused.call].what);
  const bool never = NeverFits(needs, /*padded=*/false, segment);
  if (refusal.kind == RefusalKind::kNeverFits) {
    EXPECT_TRUE(never || (!refused.at_once && NeverFits(needs, /*padded=*/true, segment)))
        << Sentence(refusal);
    ++seen_.never;
    return;
  }
  EXPECT_FALSE(never) << Sentence(refusal);
  if (refusal.limit == LimitKind::kWaitingCalls || refusal.limit == LimitKind::kWaitingBlocks) {
    return;
  }
  const bool is_late = IsLate(refused);
  if (refusal.limit == LimitKind::kDriver) {
    EXPECT_TRUE(device_refused_ || is_late) << Sentence(refusal);
    return;
  }
  CheckInTime(refused);
  EXPECT_GT(refusal.requested, refusal.free) << Sentence(refusal);
  EXPECT_LE(refusal.free, refusal.value) << Sentence(refusal);
  EXPECT_EQ(refusal.in_use, refusal.value - refusal.free) << Sentence(refusal);
  const Room room = RoomFor(refused);
  EXPECT_FALSE(segment ? FitsOnOneHeap(needs, room, !refused.at_once)
                       : Fits(needs, room, !refused.at_once))
      << Sentence(refusal);
  if (refused.at_once) {
    if (room.exact) CheckFigures(refused, needs, room);
    CheckAskedFirst(refused);
  }
}

void ReferenceModel::CheckFigures(const RefusedCall& refused, const std::vector<Need>& needs,
                                  const Room& room) {
  ++seen_.exact_refusals;
  const Refusal& refusal = refused.refusal;
  if (refusal.limit != LimitKind::kHeapBudget) {
    EXPECT_EQ(refusal.value, stats_.max_allocations);
    EXPECT_EQ(refusal.free, room.blocks);
    EXPECT_EQ(refusal.largest_now, room.blocks);
    EXPECT_EQ(refusal.requested, needs.size());
    return;
  }
  ASSERT_TRUE(refusal.heap.has_value());
  EXPECT_EQ(refusal.value, NowOn(*refusal.heap).count());
  EXPECT_EQ(refusal.free, room.heaps[*refusal.heap].count());
  Bytes requested;
  for (const Need& need : needs) {
    if (need.heaps.contains(*refusal.heap)) requested += need.bytes;
  }
  EXPECT_EQ(refusal.requested, requested.count());
  EXPECT_EQ(refusal.largest_now,
            room.blocks == 0 ? 0 : std::min(refusal.free, device_.max_allocation_size.count()));
}

}  // namespace heapbroker

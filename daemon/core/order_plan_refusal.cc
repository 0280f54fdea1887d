// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of Planner that says why there is no plan, or will never be one.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "daemon/core/order_plan.h"

namespace heapbroker {
namespace {

Bytes Sum(Bytes a, Bytes b) { return CheckedAdd(a, b).value_or(Bytes::Max()); }

bool CanLieOn(const Piece& piece, uint32_t heap) {
  return absl::c_linear_search(piece.heaps, heap);
}

// Of all pieces that could lie there.
Bytes SumOn(absl::Span<const Piece> pieces, uint32_t heap) {
  Bytes sum;
  for (const Piece& piece : pieces) {
    if (CanLieOn(piece, heap)) sum = Sum(sum, piece.bytes);
  }
  return sum;
}

}  // namespace

std::vector<Piece> Planner::PiecesOf(const Order& order) const {
  std::vector<Piece> pieces;
  pieces.reserve(order.wants.size());
  for (const Want& want : order.wants) {
    Piece& piece = pieces.emplace_back();
    piece.bytes = want.least();
    for (const MemoryTypeChoice& type : want.placement->types) {
      const uint32_t heap = room_.HeapOf(type.memory_type);
      if (!CanLieOn(piece, heap)) piece.heaps.push_back(heap);
    }
  }
  return pieces;
}

Bytes Planner::LeftOn(uint32_t heap, ReserveOn reserve) const {
  const Reserve kept = reserve(heap);
  const Bytes room = room_.RoomOn(heap);
  return kept.all || kept.bytes > room ? Bytes() : room - kept.bytes;
}

std::vector<Bytes> Planner::RoomFor(ReserveOn reserve) const {
  std::vector<Bytes> room;
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) {
    room.push_back(LeftOn(heap, reserve));
  }
  return room;
}

std::vector<Bytes> Planner::RoomNowFor(ReserveOn reserve) const {
  std::vector<Bytes> room = RoomFor(reserve);
  for (uint32_t heap = 0; heap < room.size(); ++heap) {
    const Bytes now = room_.RoomNow(heap);
    room[heap] = std::min(room[heap], now - std::min(now, reserve(heap).bytes));
  }
  return room;
}

Refusal Planner::NeverFitsOn(absl::Span<const uint32_t> heaps, Bytes requested) const {
  Refusal refusal;
  refusal.kind = RefusalKind::kNeverFits;
  Bytes value, largest;
  for (uint32_t heap : heaps) {
    value = Sum(value, room_.heap(heap).limit());
    largest = std::max(largest, room_.heap(heap).limit());
  }
  if (heaps.size() == 1) refusal.heap = heaps.front();
  refusal.value = value.count();
  refusal.requested = requested.count();
  refusal.largest_now = std::min(largest, device_.max_allocation_size).count();
  return refusal;
}

bool Planner::FitsAlone(const Want& want) const {
  const Bytes bytes = want.least();
  return bytes <= device_.max_allocation_size &&
         absl::c_any_of(want.placement->types, [&](const MemoryTypeChoice& type) {
           return bytes <= room_.heap(room_.HeapOf(type.memory_type)).limit();
         });
}

std::optional<Refusal> Planner::NeverFits(const Order& order) const {
  const CountLimit& count = room_.count_limit();
  if (order.wants.size() > count.blocks) {
    Refusal refusal;
    refusal.kind = RefusalKind::kNeverFits;
    refusal.limit = count.kind;
    refusal.value = refusal.largest_now = count.blocks;
    refusal.requested = order.wants.size();
    return refusal;
  }
  // Nearly every order is for one block, and fits: no lists for that.
  if (order.wants.size() == 1 && FitsAlone(order.wants.front())) return std::nullopt;
  std::vector<Piece> pieces = PiecesOf(order);
  for (Piece& piece : pieces) {
    if (piece.bytes > device_.max_allocation_size) {
      // By its alignment: a size over it is refused before.
      Refusal refusal;
      refusal.kind = RefusalKind::kNeverFits;
      refusal.limit = LimitKind::kMaxAllocationSize;
      refusal.value = refusal.largest_now = device_.max_allocation_size.count();
      refusal.requested = piece.bytes.count();
      return refusal;
    }
    const uint32_t largest = LargestOf(piece.heaps);
    if (piece.bytes > room_.heap(largest).limit()) return NeverFitsOn({&largest, 1}, piece.bytes);
    // It has no place where not even it alone would fit.
    const auto too_small = [&](uint32_t heap) { return piece.bytes > room_.heap(heap).limit(); };
    piece.heaps.erase(std::remove_if(piece.heaps.begin(), piece.heaps.end(), too_small),
                      piece.heaps.end());
  }
  if (!order.segment) return NeverFits(pieces);
  // One type, and so one heap, has to hold all of a segment.
  const uint32_t largest = LargestOf(pieces.front().heaps);
  const Bytes all = SumOn(pieces, largest);
  if (all <= room_.heap(largest).limit()) return std::nullopt;
  return NeverFitsOn({&largest, 1}, all);
}

std::optional<Refusal> Planner::NeverFits(absl::Span<const Piece> pieces) const {
  std::vector<Bytes> limits;
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) {
    limits.push_back(room_.heap(heap).limit());
  }
  const auto assigned = AssignHeaps(pieces, limits);
  const auto* none = std::get_if<NoAssignment>(&assigned);
  if (none == nullptr || !none->certain) return std::nullopt;
  // Most plainly said where one heap is all that some of them have.
  for (uint32_t heap = 0; heap < limits.size(); ++heap) {
    Bytes bound;
    for (const Piece& piece : pieces) {
      if (piece.heaps.size() == 1 && piece.heaps.front() == heap) bound = Sum(bound, piece.bytes);
    }
    if (bound > limits[heap]) return NeverFitsOn({&heap, 1}, bound);
  }
  // Else with all that compete for the same heaps.
  std::vector<uint32_t> heaps = {none->heap};
  Bytes requested;
  std::vector<bool> counted(pieces.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (counted[i] ||
          absl::c_none_of(heaps, [&](uint32_t heap) { return CanLieOn(pieces[i], heap); })) {
        continue;
      }
      counted[i] = more = true;
      requested = Sum(requested, pieces[i].bytes);
      for (uint32_t heap : pieces[i].heaps) {
        if (!absl::c_linear_search(heaps, heap)) heaps.push_back(heap);
      }
    }
  }
  return NeverFitsOn(heaps, requested);
}

uint32_t Planner::LargestOf(absl::Span<const uint32_t> heaps) const {
  return *std::max_element(heaps.begin(), heaps.end(), [this](uint32_t a, uint32_t b) {
    return room_.heap(a).limit() < room_.heap(b).limit();
  });
}

uint32_t Planner::RoomiestOf(absl::Span<const uint32_t> heaps, ReserveOn reserve) const {
  return *std::max_element(heaps.begin(), heaps.end(), [&](uint32_t a, uint32_t b) {
    return LeftOn(a, reserve) < LeftOn(b, reserve);
  });
}

uint64_t Planner::AllocationsLeft(absl::Span<const Piece> pieces, ReserveOn reserve) const {
  uint64_t kept = 0;
  for (const Piece& piece : pieces) {
    for (uint32_t heap : piece.heaps) kept = std::max(kept, reserve(heap).allocations);
  }
  const uint64_t room = room_.AllocationRoom();
  return room - std::min(room, kept);
}

Refusal Planner::Explain(const Order& order, ReserveOn reserve,
                         std::optional<uint32_t> short_heap) const {
  const std::vector<Piece> pieces = PiecesOf(order);
  const uint64_t allocations = AllocationsLeft(pieces, reserve);
  Refusal refusal;
  // Bytes are named first where both are short: they are what the caller chose.
  if (!short_heap) {
    refusal.limit = room_.count_limit().kind;
    refusal.value = room_.count_limit().blocks;
    refusal.in_use = refusal.value - allocations;
    refusal.requested = order.wants.size();
    refusal.free = refusal.largest_now = allocations;
    return refusal;
  }
  const Bytes left = LeftOn(*short_heap, reserve), limit = room_.heap(*short_heap).now();
  refusal.heap = short_heap;
  refusal.value = limit.count();
  refusal.in_use = (limit > left ? limit - left : Bytes()).count();
  refusal.requested = SumOn(pieces, *short_heap).count();
  refusal.free = left.count();
  refusal.largest_now = allocations == 0 ? 0 : std::min(left, device_.max_allocation_size).count();
  return refusal;
}

Refusal Planner::ExplainSegment(const Order& order, ReserveOn reserve) const {
  Bytes all;
  for (const Want& want : order.wants) all = Sum(all, want.least());
  const uint32_t heap = RoomiestOf(PiecesOf(order).front().heaps, reserve);
  const bool is_short = all > LeftOn(heap, reserve);
  return Explain(order, reserve, is_short ? std::optional<uint32_t>(heap) : std::nullopt);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/heap_assignment.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace heapbroker {
namespace {

Bytes Sum(Bytes a, Bytes b) { return CheckedAdd(a, b).value_or(Bytes::Max()); }

bool CanLieOn(const Piece& piece, uint32_t heap) {
  return std::find(piece.heaps.begin(), piece.heaps.end(), heap) != piece.heaps.end();
}

class Search {
 public:
  Search(absl::Span<const Piece> pieces, std::vector<Bytes> room)
      : pieces_(pieces), room_(std::move(room)), assigned_(pieces.size()), open_(pieces.size()) {
    for (size_t i = 0; i < pieces.size(); ++i) open_[i] = i;
  }

  std::variant<HeapAssignment, NoAssignment> Run() {
    while (SettleOneHeap()) {
    }
    if (open_.empty()) return std::move(assigned_);
    NoAssignment none{Roomiest()};
    MakeGroups();
    if (PlaceFrom(0)) return std::move(assigned_);
    none.certain = steps_ <= kMostAssignmentSteps;
    return none;
  }

 private:
  // Pieces that differ in nothing.
  struct Group {
    std::vector<size_t> pieces;
    // Of this group and those behind it: their bytes, and where any of them could lie.
    Bytes rest;
    std::vector<uint32_t> heaps_of_rest;
  };

  // Where a heap has room for everything that could lie there, that is where it goes:
  // no other piece has a use for that room. True if something was placed.
  bool SettleOneHeap() {
    for (uint32_t heap = 0; heap < room_.size(); ++heap) {
      std::optional<Bytes> left = room_[heap];
      bool any = false;
      for (size_t i : open_) {
        if (!CanLieOn(pieces_[i], heap)) continue;
        any = true;
        if (pieces_[i].bytes > *left) {
          left.reset();
          break;
        }
        *left -= pieces_[i].bytes;
      }
      if (!any || !left) continue;
      room_[heap] = *left;
      open_.erase(std::remove_if(open_.begin(), open_.end(),
                                 [&](size_t i) {
                                   if (!CanLieOn(pieces_[i], heap)) return false;
                                   assigned_[i] = heap;
                                   return true;
                                 }),
                  open_.end());
      return true;
    }
    return false;
  }

  uint32_t Roomiest() const {
    uint32_t roomiest = pieces_[open_.front()].heaps.front();
    for (size_t i : open_) {
      for (uint32_t heap : pieces_[i].heaps) {
        if (room_[heap] > room_[roomiest]) roomiest = heap;
      }
    }
    return roomiest;
  }

  // What can lie in the fewest places goes first, and of that the largest.
  void MakeGroups() {
    std::stable_sort(open_.begin(), open_.end(), [this](size_t a, size_t b) {
      const Piece &one = pieces_[a], &other = pieces_[b];
      if (one.heaps.size() != other.heaps.size()) return one.heaps.size() < other.heaps.size();
      if (one.bytes != other.bytes) return one.bytes > other.bytes;
      return one.heaps < other.heaps;
    });
    for (size_t i : open_) {
      const auto same = [&](const Group& group) {
        const Piece& piece = pieces_[group.pieces.front()];
        return piece.bytes == pieces_[i].bytes && piece.heaps == pieces_[i].heaps;
      };
      if (groups_.empty() || !same(groups_.back())) groups_.emplace_back();
      groups_.back().pieces.push_back(i);
    }
    for (size_t g = groups_.size(); g-- > 0;) {
      Group& group = groups_[g];
      if (g + 1 < groups_.size()) {
        group.rest = groups_[g + 1].rest;
        group.heaps_of_rest = groups_[g + 1].heaps_of_rest;
      }
      for (size_t i : group.pieces) group.rest = Sum(group.rest, pieces_[i].bytes);
      for (uint32_t heap : pieces_[group.pieces.front()].heaps) {
        auto& heaps = group.heaps_of_rest;
        if (std::find(heaps.begin(), heaps.end(), heap) == heaps.end()) heaps.push_back(heap);
      }
    }
  }

  // The groups from `g` on, in the room that is left; if not, nothing has changed.
  bool PlaceFrom(size_t g) {
    if (g == groups_.size()) return true;
    Bytes room;
    for (uint32_t heap : groups_[g].heaps_of_rest) room = Sum(room, room_[heap]);
    if (groups_[g].rest > room) return false;
    return Divide(g, 0, 0);
  }

  // Pieces of the group from the `placed`-th on, over its heaps from the `at`-th on.
  bool Divide(size_t g, size_t at, size_t placed) {
    const std::vector<size_t>& pieces = groups_[g].pieces;
    if (placed == pieces.size()) return PlaceFrom(g + 1);
    const Piece& piece = pieces_[pieces.front()];
    if (at == piece.heaps.size()) return false;
    const uint32_t heap = piece.heaps[at];
    const uint64_t fit = room_[heap].count() / std::max<uint64_t>(1, piece.bytes.count());
    const size_t left = pieces.size() - placed;
    const size_t most = static_cast<size_t>(std::min<uint64_t>(left, fit));
    // The last heap has to take all that are left.
    const size_t fewest = at + 1 == piece.heaps.size() ? left : 0;
    for (size_t count = most + 1; count-- > fewest;) {
      if (++steps_ > kMostAssignmentSteps) return false;
      const Bytes bytes(piece.bytes.count() * count);
      room_[heap] -= bytes;
      if (Divide(g, at + 1, placed + count)) {
        for (size_t i = 0; i < count; ++i) assigned_[pieces[placed + i]] = heap;
        return true;
      }
      room_[heap] += bytes;
    }
    return false;
  }

  const absl::Span<const Piece> pieces_;
  std::vector<Bytes> room_;
  HeapAssignment assigned_;
  std::vector<size_t> open_;  // Pieces that have no place yet.
  std::vector<Group> groups_;
  size_t steps_ = 0;
};

}  // namespace

std::variant<HeapAssignment, NoAssignment> AssignHeaps(absl::Span<const Piece> pieces,
                                                       std::vector<Bytes> room) {
  return Search(pieces, std::move(room)).Run();
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What serves each block of an order: an idle block, bytes that are there, or bytes
// that are on their way.
#ifndef DAEMON_CORE_ORDER_PLAN_H_
#define DAEMON_CORE_ORDER_PLAN_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/core/block_size.h"
#include "daemon/core/device_room.h"
#include "daemon/core/heap_assignment.h"
#include "daemon/core/order.h"
#include "daemon/core/refusal.h"

namespace heapbroker {

// What serves one want.
struct Part {
  size_t pool = 0;
  uint32_t memory_type = 0;
  Bytes exact;                 // What is asked for, and
  Bytes least;                 // what must be there for it: as in Want.
  Bytes made_for;              // Of a miss: the buffer to make, `exact` or more.
  std::optional<Claim> claim;  // Until the plan is taken.
  std::optional<Block> hit;    // After that.
  Bytes taken;                 // Of a miss: bytes that are there,
  Bytes promised;              // or bytes that will be.
  MissReason reason = MissReason::kNeverCached;
  // Pools that were asked and passed it on.
  absl::InlinedVector<std::pair<size_t, MissReason>, 1> passed;

  bool is_hit() const { return claim.has_value() || hit.has_value(); }
};

struct Plan {
  absl::InlinedVector<Part, 2> parts;
  bool is_promise() const {
    for (const Part& part : parts) {
      if (part.promised != Bytes()) return true;
    }
    return false;
  }
};

// What an order must leave to the one whose turn it is on a heap.
struct Reserve {
  bool all = false;  // Everything: only idle blocks will do.
  Bytes bytes;
  uint64_t allocations = 0;
};

// Finds memory for orders, all of it or none, and takes it back.
//
// Bookkeeping only; guarded by its owner's mutex.
class Planner {
 public:
  Planner(const DeviceInfo& device, const MatchingPolicy& matching, DeviceRoom& room)
      : device_(device), matching_(matching), room_(room) {}

  // Why the order would not fit if nothing else were held, however its blocks lie on the
  // heaps; unset where it would, or where that is more than AssignHeaps finds out.
  std::optional<Refusal> NeverFits(const Order& order) const;

  using ReserveOn = absl::FunctionRef<Reserve(uint32_t heap)>;
  // A plan whose idle blocks are claimed and whose bytes are taken or promised; or
  // why there is none, and then nothing has changed. Take or Undo must follow.
  std::variant<Plan, Refusal> Make(const Order& order, ReserveOn reserve);
  // Likewise, with nothing that the device has yet to free.
  std::optional<Plan> MakeAtOnce(const Order& order, ReserveOn reserve);

  // The claimed blocks become the order's, and what has to go for it goes.
  void Take(const Order& order, Plan& plan, Effects& effects);
  // Before Take.
  void Undo(Plan& plan);
  // After Take: bytes that no allocation was made of, and promises, go back; the
  // idle blocks it took are the caller's.
  void GiveUp(Plan& plan);
  // Takes bytes that were promised, as far as they are there; true if all are.
  bool Redeem(Plan& plan, Effects& effects);

 private:
  // What a plan may do.
  struct Means {
    bool use_hits = true;
    bool round = true;  // New blocks up, so that they can be reused.
    std::optional<uint32_t> only_type = std::nullopt;
    const HeapAssignment* heaps = nullptr;  // Where each want lies; null: where it suits.
    bool promise = true;                    // What the device has yet to free.
  };
  // What a new block could be made as.
  struct NewBlock {
    Bytes made_for;
    Bytes bytes;  // To take for it.
  };
  absl::InlinedVector<NewBlock, 2> NewBlocksFor(const Part& part, bool round) const;

  std::optional<Plan> MakeSegment(const Order& order, ReserveOn reserve, bool promise);
  std::optional<Plan> MakeOneByOne(const Order& order, ReserveOn reserve, bool promise);
  std::optional<Plan> MakeOn(const HeapAssignment& heaps, const Order& order, ReserveOn reserve,
                             bool promise);
  std::optional<Plan> MakeWith(const Order& order, ReserveOn reserve, const Means& means);
  bool PlanPart(const Order& order, size_t index, ReserveOn reserve, const Means& means,
                Part& part);
  bool FindInPools(const Order& order, size_t index, ReserveOn reserve, const Means& means,
                   Part& part, std::optional<PoolChoice>& fallback);
  // Whether the means leave the want that memory type.
  bool Allows(const Means& means, size_t index, uint32_t memory_type) const;
  bool KeepsPromises(const Plan& plan) const;
  bool TakeNow(size_t pool, uint32_t memory_type, const NewBlock& block, ReserveOn reserve,
               Part& part);
  bool HasRoom(uint32_t heap, Bytes bytes, ReserveOn reserve) const;

  // The order as blocks that need a place, and what is not held, by heap.
  std::vector<Piece> PiecesOf(const Order& order) const;
  std::vector<Bytes> RoomFor(ReserveOn reserve) const;
  std::vector<Bytes> RoomNowFor(ReserveOn reserve) const;
  Bytes LeftOn(uint32_t heap, ReserveOn reserve) const;
  // By what there is at most, and by what is left.
  uint32_t LargestOf(absl::Span<const uint32_t> heaps) const;
  uint32_t RoomiestOf(absl::Span<const uint32_t> heaps, ReserveOn reserve) const;
  std::optional<Refusal> NeverFits(absl::Span<const Piece> pieces) const;
  bool FitsAlone(const Want& want) const;
  Refusal NeverFitsOn(absl::Span<const uint32_t> heaps, Bytes requested) const;
  // Allocations that are not kept for another on any of the pieces' heaps.
  uint64_t AllocationsLeft(absl::Span<const Piece> pieces, ReserveOn reserve) const;
  // Why there is no plan: that heap is short of bytes, or else allocations are.
  Refusal Explain(const Order& order, ReserveOn reserve, std::optional<uint32_t> short_heap) const;
  Refusal ExplainSegment(const Order& order, ReserveOn reserve) const;

  const DeviceInfo& device_;
  const MatchingPolicy matching_;
  DeviceRoom& room_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ORDER_PLAN_H_

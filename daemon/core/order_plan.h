// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What serves each block of an order: an idle block, bytes that are there, or bytes
// that are on their way.
#ifndef DAEMON_CORE_ORDER_PLAN_H_
#define DAEMON_CORE_ORDER_PLAN_H_

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "daemon/core/block_size.h"
#include "daemon/core/device_room.h"
#include "daemon/core/order.h"
#include "daemon/core/refusal.h"

namespace heapbroker {

// What serves one want.
struct Part {
  size_t pool = 0;
  uint32_t memory_type = 0;
  Bytes exact;                 // What must be there: see Want::least.
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

  // Whether the order would fit if nothing else were held. Sums of several blocks
  // are judged by the heaps that any of them could lie on.
  std::optional<Refusal> NeverFits(const Order& order) const;

  using ReserveOn = absl::FunctionRef<Reserve(uint32_t heap)>;
  // A plan whose idle blocks are claimed and whose bytes are taken or promised; or
  // why there is none, and then nothing has changed. Take or Undo must follow.
  std::variant<Plan, Refusal> Make(const Order& order, ReserveOn reserve);

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
    // Begin with what can lie in the fewest places, the largest first, so that it does
    // not find them taken by what could have gone elsewhere.
    bool scarce_first = false;
    std::optional<uint32_t> only_type = std::nullopt;
  };
  std::set<uint32_t> HeapsOf(const Want& want) const;
  absl::InlinedVector<size_t, 2> Sequence(const Order& order, const Means& means) const;
  std::variant<Plan, Refusal> MakeWith(const Order& order, ReserveOn reserve, const Means& means);
  bool PlanPart(TenantId tenant, const Want& want, ReserveOn reserve, const Means& means,
                Part& part);
  bool FindInPools(TenantId tenant, const Want& want, ReserveOn reserve, const Means& means,
                   Part& part, std::optional<PoolChoice>& fallback);
  bool KeepsPromises(const Plan& plan) const;
  bool TakeNow(size_t pool, uint32_t memory_type, Bytes bytes, ReserveOn reserve, Part& part);
  bool HasRoom(uint32_t heap, Bytes bytes, ReserveOn reserve) const;
  Refusal Explain(const Order& order, const Want& want, ReserveOn reserve) const;

  const DeviceInfo& device_;
  const MatchingPolicy matching_;
  DeviceRoom& room_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ORDER_PLAN_H_

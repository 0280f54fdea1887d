// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of Planner that carries a plan out, or takes it back.
#include <utility>

#include "daemon/core/order_plan.h"

namespace heapbroker {

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
    if (pooled && !room_.pools().pool(part.pool).CanHold(part.least)) {
      part.passed.emplace_back(part.pool, MissReason::kAtCapacity);
      part.pool = room_.pools().direct();
    }
    CachingPool& pool = room_.pools().pool(part.pool);
    for (const NewBlock& block : NewBlocksFor(part, part.pool != room_.pools().direct())) {
      if (!pool.CanHold(block.bytes)) continue;
      if (!room_.Redeem(room_.HeapOf(part.memory_type), part.promised, block.bytes)) continue;
      part.promised = Bytes();
      part.made_for = block.made_for;
      part.taken = block.bytes;
      pool.Reserve(block.bytes);
      for (Block& evicted : pool.EvictOverCapacity()) {
        room_.StartFreeing(std::move(evicted), effects);
      }
      break;
    }
    all = all && part.promised == Bytes();
  }
  return all;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of Admission that keeps those who wait.
#include <algorithm>
#include <utility>

#include "daemon/core/admission.h"

namespace heapbroker {
namespace {

// Orders of a tenant that are looked at when one of its blocks becomes idle, and of
// those that rest: enough to let hits pass, and a bound on what one release can cost.
constexpr size_t kOrdersTried = 16;

}  // namespace

// A head has to leave what those need that were elected before it, in the queue of
// whatever heap, and everyone else what all heads need: on every heap that they could
// lie on, and of the number of allocations. So one that needs two heaps does not
// lose the one while it waits for the other; and of several heads the one that was
// elected first gets what it needs, so that they never wait for each other.
Admission::Reserves Admission::ReservesFor(const Job& job) {
  Reserves reserves(queues_.size());
  if (jobs_.empty()) return reserves;
  absl::InlinedVector<std::optional<OrderId>, 4> heads;
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) heads.push_back(Head(heap));
  const OrderId id = job.order.id;
  const bool is_head = job.state == State::kQueued && heads[job.heap] == id;
  const bool waits = Waits(job);
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    if (!heads[heap] || heads[heap] == id) continue;
    if (is_head && queues_[job.heap].election() < queues_[heap].election()) continue;
    // Who waits, or can, goes behind those in the queue.
    if (waits && !is_head) reserves[heap].all = true;
    KeepFor(jobs_.at(*heads[heap]).order, reserves);
  }
  return reserves;
}

void Admission::KeepFor(const Order& head, Reserves& reserves) const {
  for (uint32_t heap = 0; heap < reserves.size(); ++heap) {
    Reserve& reserve = reserves[heap];
    reserve.allocations += head.wants.size();
    for (const Want& want : head.wants) {
      const auto& types = want.placement->types;
      if (std::any_of(types.begin(), types.end(), [&](const MemoryTypeChoice& type) {
            return room_.HeapOf(type.memory_type) == heap;
          })) {
        reserve.bytes = CheckedAdd(reserve.bytes, want.least()).value_or(Bytes::Max());
      }
    }
  }
}

void Admission::Enqueue(Jobs::iterator at, const Refusal& refusal, absl::Time until,
                        Effects& effects) {
  Job& job = at->second;
  if (job.state != State::kQueued) ++totals_.queued;
  retrying_.erase(at->first);
  job.state = State::kQueued;
  job.heap = refusal.heap.value_or(
      room_.HeapOf(job.order.wants.front().placement->types.front().memory_type));
  queues_[job.heap].Add(at->first, job.order.tenant, job.order.priority);
  StayUntil(job, refusal, until, effects);
}

void Admission::StayUntil(Job& job, const Refusal& refusal, absl::Time until, Effects& effects) {
  job.until = until;
  // Whose turn it is not has clients asked only when its time is nearly up: nobody
  // needs to give back what it may not have.
  const absl::Time ask_at = until - options_.give_back_time;
  SetDue(job, ask_at > clock_.Now() ? ask_at : until);
  const bool is_head = Head(job.heap) == job.order.id;
  if (is_head || !MayWait(job)) {
    AskClients(job, refusal, effects);
  } else if (job.due == until) {
    AskInTime(job, effects);
  }
}

void Admission::LeaveQueue(const Job& job) {
  queues_[job.heap].Remove(job.order.id, job.order.tenant, job.order.priority);
}

std::vector<Admission::Finished> Admission::Pump(std::optional<TenantId> tenant, Effects& effects) {
  std::vector<Finished> finished;
  if (jobs_.empty()) return finished;
  PumpPromises(finished, effects);
  PumpRetries(finished, effects);
  // Of heads that are elected at the same time the first heap's is the first, whoever's
  // blocks became idle.
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) Head(heap);
  for (uint32_t heap = 0; tenant && heap < queues_.size(); ++heap) {
    PumpHits(heap, *tenant, finished, effects);
  }
  PumpQueues(finished, effects);
  return finished;
}

void Admission::PumpPromises(std::vector<Finished>& finished, Effects& effects) {
  size_t heaps_waited_for = 0;
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    if (room_.heap(heap).promised() > Bytes()) ++heaps_waited_for;
  }
  // Once the first orders lack bytes of every heap, those behind them get none.
  std::set<uint32_t> lacking;
  for (auto it = promised_.begin(); it != promised_.end() && lacking.size() < heaps_waited_for;) {
    const auto at = jobs_.find(*it++);
    Job& job = at->second;
    if (planner_.Redeem(job.plan, effects)) {
      Attempt attempt = Start(job, effects);
      Land(at, std::move(attempt), State::kPromised, finished);
      continue;
    }
    if (room_.being_freed() == 0) room_.EvictForPromises(effects);
    if (room_.being_freed() == 0) {
      BreakPromise(at, finished, effects);
      continue;
    }
    for (const Part& part : job.plan.parts) {
      if (part.promised != Bytes()) lacking.insert(room_.HeapOf(part.memory_type));
    }
  }
}

// Nothing is on its way any more, and it was not enough: the driver offers less than
// when the promise was made. The order begins anew, as one that may not be promised.
void Admission::BreakPromise(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects) {
  Job& job = at->second;
  promised_.erase(at->first);
  GiveUpPlan(job, effects);
  job.state = State::kRetrying;
  TryAgain(at, finished, effects);
}

void Admission::TryAgain(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects) {
  if (const std::optional<Refusal> never = planner_.NeverFits(at->second.order)) {
    finished.push_back(Refuse(Extract(at).order, *never));
    return;
  }
  Attempt attempt = Try(at->second, effects);
  const auto* refusal = std::get_if<Refusal>(&attempt);
  if (refusal == nullptr) {
    Land(at, std::move(attempt), State::kRetrying, finished);
  } else if (const auto until = WaitUntil(at->second, *refusal)) {
    Enqueue(at, *refusal, *until, effects);
  } else {
    finished.push_back(Refuse(Extract(at).order, *refusal));
  }
}

void Admission::PumpRetries(std::vector<Finished>& finished, Effects& effects) {
  for (auto it = retrying_.begin(); it != retrying_.end();) {
    const auto at = jobs_.find(*it++);
    if (room_.freed() >= at->second.after_frees) TryAgain(at, finished, effects);
  }
}

// Until no head can be served: what one leaves may be another queue's.
void Admission::PumpQueues(std::vector<Finished>& finished, Effects& effects) {
  size_t in_vain = 0;
  for (uint32_t heap = 0; in_vain < queues_.size(); heap = (heap + 1) % queues_.size()) {
    in_vain = PumpQueue(heap, finished, effects) ? 1 : in_vain + 1;
  }
}

bool Admission::PumpQueue(uint32_t heap, std::vector<Finished>& finished, Effects& effects) {
  bool served = false;
  while (const std::optional<OrderId> head = Head(heap)) {
    const auto at = jobs_.find(*head);
    Attempt attempt = Try(at->second, effects);
    if (const auto* refusal = std::get_if<Refusal>(&attempt)) {
      AskClients(at->second, *refusal, effects);
      return served;
    }
    Land(at, std::move(attempt), State::kQueued, finished);
    served = true;
  }
  // It is nobody's turn: those that rest may have what there is.
  bool asked = false;
  for (OrderId id : queues_[heap].Resting(kOrdersTried)) {
    const auto at = jobs_.find(id);
    Attempt attempt = Try(at->second, effects);
    if (const auto* refusal = std::get_if<Refusal>(&attempt)) {
      if (!std::exchange(asked, true)) AskClients(at->second, *refusal, effects);
      continue;
    }
    Land(at, std::move(attempt), State::kQueued, finished);
    served = true;
  }
  return served;
}

// Blocks that became idle serve their tenant's orders past the head: they could not
// serve anyone else's.
void Admission::PumpHits(uint32_t heap, TenantId tenant, std::vector<Finished>& finished,
                         Effects& effects) {
  for (OrderId id : queues_[heap].Of(tenant, kOrdersTried)) {
    const std::optional<OrderId> head = Head(heap);
    if (head == id) continue;  // PumpQueue's.
    const auto at = jobs_.find(id);
    // Where it is nobody's turn nothing else keeps them from what others wait for.
    Attempt attempt = Try(at->second, effects, head ? Allowed::kPromise : Allowed::kHits);
    if (std::holds_alternative<Refusal>(attempt)) continue;
    if (std::holds_alternative<NotAllowed>(attempt)) continue;
    Land(at, std::move(attempt), State::kQueued, finished);
  }
}

}  // namespace heapbroker

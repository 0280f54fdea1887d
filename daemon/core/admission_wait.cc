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

// How often what the driver offers is asked for where that is what an order lacks.
constexpr absl::Duration kDriverInterval = absl::Seconds(1);

}  // namespace

std::optional<absl::Time> Admission::WaitUntil(const Job& job, const Refusal& refusal) const {
  const absl::Time now = clock_.Now();
  absl::Time until = job.order.wait_until.value_or(absl::InfinitePast());
  if (refusal.limit == LimitKind::kHeapBudget) {
    // Worth a moment, if what clients keep idle would be enough.
    const Bytes askable = caches_.AskableOn(*refusal.heap, now);
    if (askable > Bytes() && refusal.requested <= refusal.free + askable.count()) {
      until = std::max(until, now + options_.give_back_time);
    }
  }
  return until > now ? std::optional<absl::Time>(until) : std::nullopt;
}

// A head has to leave what those need that were elected before it, in the queue of
// whatever heap, and everyone else what all heads need: on every heap that they could
// lie on, and of the number of allocations. So one that needs two heaps does not
// lose the one while it waits for the other; and of several heads the one that was
// elected first gets what it needs, so that they never wait for each other.
Admission::Reserves Admission::ReservesFor(const Job& job) {
  Reserves reserves(queues_.size());
  if (jobs_.empty()) return reserves;
  const OrderId id = job.order.id;
  const bool is_head = job.state == State::kQueued && Head(job.heap) == id;
  const bool may_wait = job.order.wait_until && *job.order.wait_until > clock_.Now();
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    const std::optional<OrderId> head = Head(heap);
    if (!head || head == id) continue;
    if (is_head && queues_[job.heap].election() < queues_[heap].election()) continue;
    // Who can wait goes behind those in the queue.
    if (may_wait && !is_head) reserves[heap].all = true;
    KeepFor(jobs_.at(*head).order, reserves);
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
  job.until = until;
  queues_[job.heap].Add(at->first, job.order.tenant, job.order.priority);
  expiries_.insert({until, at->first});
  if (Head(job.heap) == at->first || !job.order.wait_until) {
    AskClients(refusal, effects);
  }
}

void Admission::LeaveQueue(const Job& job) {
  queues_[job.heap].Remove(job.order.id, job.order.tenant, job.order.priority);
  expiries_.erase({job.until, job.order.id});
}

void Admission::AskClients(const Refusal& refusal, Effects& effects) {
  if (refusal.limit != LimitKind::kHeapBudget || refusal.requested <= refusal.free) return;
  const absl::Time now = clock_.Now();
  const absl::Time deadline = now + options_.give_back_time;
  const Bytes short_of(refusal.requested - refusal.free);
  for (const ClientCaches::Ask& ask :
       caches_.ChooseWhomToAsk(*refusal.heap, short_of, now, deadline)) {
    effects.events.emplace_back(ask.session,
                                GiveBackWanted{device_.index, *refusal.heap, ask.bytes, deadline});
  }
}

bool Admission::HasLessThanItsLimit(uint32_t heap) const {
  return room_.heap(heap).now() < room_.heap(heap).limit();
}

// The driver is asked after the device has worked. Where what it said keeps the device
// from any work, it would not be asked again.
void Admission::AskDriver(Effects& effects) {
  const absl::Time now = clock_.Now();
  if (now - driver_asked_at_ < kDriverInterval) return;
  driver_asked_at_ = now;
  effects.read_heaps = true;
}

std::vector<Admission::Finished> Admission::Pump(std::optional<TenantId> tenant, Effects& effects) {
  std::vector<Finished> finished;
  if (jobs_.empty()) return finished;
  PumpPromises(finished, effects);
  PumpRetries(finished, effects);
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
      AskClients(*refusal, effects);
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
      if (!std::exchange(asked, true)) AskClients(*refusal, effects);
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
    if (Head(heap) == id) continue;  // PumpQueue's.
    const auto at = jobs_.find(id);
    Attempt attempt = Try(at->second, effects);
    if (std::holds_alternative<Refusal>(attempt)) continue;
    Land(at, std::move(attempt), State::kQueued, finished);
  }
}

std::vector<Admission::Finished> Admission::Tick(Effects& effects) {
  std::vector<Finished> finished;
  const absl::Time now = clock_.Now();
  if (options_.idle_ttl > absl::ZeroDuration()) {
    room_.EvictExpired(now - options_.idle_ttl, effects);
  }
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const auto at = jobs_.find(expiries_.begin()->second);
    // Once more, as one that does not wait: something may be there that the head
    // does not need.
    at->second.order.wait_until = std::nullopt;
    Attempt attempt = Try(at->second, effects);
    if (const auto* refusal = std::get_if<Refusal>(&attempt)) {
      finished.push_back(Refuse(Extract(at).order, *refusal));
    } else {
      Land(at, std::move(attempt), State::kQueued, finished);
    }
  }
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    if (!queues_[heap].empty() && HasLessThanItsLimit(heap)) AskDriver(effects);
  }
  for (Finished& more : Pump(std::nullopt, effects)) finished.push_back(std::move(more));
  return finished;
}

absl::Time Admission::NextDue() const {
  absl::Time due = absl::InfiniteFuture();
  if (!expiries_.empty()) due = std::min(due, expiries_.begin()->first);
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    if (queues_[heap].empty() || !HasLessThanItsLimit(heap)) continue;
    due = std::min(due, driver_asked_at_ + kDriverInterval);
  }
  for (const WaitQueue& queue : queues_) due = std::min(due, queue.NextChange());
  if (options_.idle_ttl > absl::ZeroDuration()) {
    due = std::min(due, room_.pools().OldestSince() + options_.idle_ttl);
  }
  return due;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of Admission that looks at the time, and has others asked for what orders
// lack while there is some.
#include <algorithm>
#include <map>
#include <utility>

#include "daemon/core/admission.h"

namespace heapbroker {
namespace {

// How often what the driver offers is asked for where that is what an order lacks.
constexpr absl::Duration kDriverInterval = absl::Seconds(1);

// Why an order is refused although it would fit.
constexpr absl::string_view kNotFreedInTime = "the device did not free what is idle in time";

}  // namespace

bool Admission::MayWait(const Job& job) const {
  return job.order.wait_until && *job.order.wait_until > clock_.Now();
}

bool Admission::Waits(const Job& job) const {
  return job.state == State::kQueued ? clock_.Now() < job.until : MayWait(job);
}

std::optional<absl::Time> Admission::WaitUntil(const Job& job, const Refusal& refusal) const {
  const absl::Time now = clock_.Now();
  absl::Time until = now;
  if (MayWait(job)) {
    until = *job.order.wait_until;
  } else if (refusal.limit == LimitKind::kHeapBudget) {
    // Worth a moment, if what clients keep idle would be enough.
    const Bytes askable = caches_.AskableOn(*refusal.heap, now);
    if (askable > Bytes() && refusal.requested <= refusal.free + askable.count()) {
      until = now + options_.give_back_time;
    }
    until = std::max(until, job.asked.until);
  }
  until = std::min(until, job.order.answer_by);
  return until > now ? std::optional<absl::Time>(until) : std::nullopt;
}

void Admission::SetDue(Job& job, absl::Time due) {
  if (job.due < absl::InfiniteFuture()) dues_.erase({job.due, job.order.id});
  job.due = due;
  if (due < absl::InfiniteFuture()) dues_.insert({due, job.order.id});
}

// As much as the order lacks, and no more of it a second time before clients have had
// their time to give it.
void Admission::AskClients(Job& job, const Refusal& refusal, Effects& effects) {
  if (refusal.limit != LimitKind::kHeapBudget || refusal.requested <= refusal.free) return;
  const absl::Time now = clock_.Now();
  const absl::Time deadline = now + options_.give_back_time;
  const uint32_t heap = *refusal.heap;
  if (job.asked.until <= now || job.asked.heap != heap) job.asked = {heap, Bytes(), now};
  const Bytes short_of(refusal.requested - refusal.free);
  if (short_of <= job.asked.bytes) return;
  for (const ClientCaches::Ask& ask :
       caches_.ChooseWhomToAsk(heap, short_of - job.asked.bytes, now, deadline)) {
    job.asked.bytes += ask.bytes;
    job.asked.until = deadline;
    effects.events.emplace_back(ask.session,
                                GiveBackWanted{device_.index, heap, ask.bytes, deadline, now});
  }
}

// For what the order would be refused for if its time were up now.
void Admission::AskInTime(Job& job, Effects& effects) {
  const absl::Time until = std::exchange(job.until, clock_.Now());
  const Reserves reserves = ReservesFor(job);
  job.until = until;
  std::variant<Plan, Refusal> made =
      planner_.Make(job.order, [&](uint32_t heap) { return reserves[heap]; });
  if (const auto* refusal = std::get_if<Refusal>(&made)) return AskClients(job, *refusal, effects);
  planner_.Undo(std::get<Plan>(made));
}

// Nobody waits any longer for what the device has yet to free: what there is at once has
// to do, wherever that is.
void Admission::AnswerInTime(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects) {
  Job& job = at->second;
  const State before = job.state;
  GiveUpPlan(job, effects);
  job.order.wait_until = std::nullopt;
  job.until = clock_.Now();
  Attempt attempt = Try(job, effects, Allowed::kWork);
  if (std::holds_alternative<NotAllowed>(attempt)) {
    finished.push_back(RefuseInTime(at));
  } else {
    Land(at, std::move(attempt), before, finished);
  }
}

Admission::Finished Admission::RefuseInTime(Jobs::iterator at) {
  const Reserves reserves = ReservesFor(at->second);
  Order order = Extract(at).order;
  std::variant<Plan, Refusal> made =
      planner_.Make(order, [&](uint32_t heap) { return reserves[heap]; });
  if (const auto* refusal = std::get_if<Refusal>(&made)) return Refuse(std::move(order), *refusal);
  planner_.Undo(std::get<Plan>(made));
  std::map<uint32_t, Bytes> wanted;
  for (const Want& want : order.wants) {
    Bytes& bytes = wanted[room_.HeapOf(want.placement->types.front().memory_type)];
    bytes = CheckedAdd(bytes, want.least()).value_or(Bytes::Max());
  }
  Refusal refusal;
  for (const auto& [heap, bytes] : wanted) {
    const Bytes room = room_.RoomNow(heap);
    const Bytes left = room - std::min(room, reserves[heap].bytes);
    refusal.heap = heap;
    refusal.value = room_.heap(heap).now().count();
    refusal.free = left.count();
    refusal.in_use = refusal.value - std::min(refusal.value, refusal.free);
    refusal.requested = bytes.count();
    refusal.largest_now = std::min(left, device_.max_allocation_size).count();
    if (bytes > left) return Finish(std::move(order), RefusalStatus(refusal, kNotFreedInTime));
  }
  const CountLimit& count = room_.count_limit();
  const uint64_t room = count.blocks - std::min(count.blocks, room_.allocations());
  if (order.wants.size() <= room) {
    // The budget has it, and the driver had it not.
    refusal.limit = LimitKind::kDriver;
  } else {
    refusal = Refusal();
    refusal.limit = count.kind;
    refusal.value = count.blocks;
    refusal.in_use = count.blocks - room;
    refusal.requested = order.wants.size();
    refusal.free = refusal.largest_now = room;
  }
  return Finish(std::move(order), RefusalStatus(refusal, kNotFreedInTime));
}

std::optional<Admission::Finished> Admission::TakeOver(CallId from, const Order& by,
                                                       Effects& effects) {
  const auto call = by_call_.extract({by.session, from});
  const auto at = jobs_.find(call.mapped());
  by_call_[{by.session, by.call}] = at->first;
  Job& job = at->second;
  job.order.call = by.call;
  job.order.wait_until = by.wait_until;
  job.order.answer_by = by.answer_by;
  job.cancelled = false;
  if (job.state == State::kInWork) return std::nullopt;
  if (job.state != State::kQueued) {
    SetDue(job, job.order.answer_by);
    return std::nullopt;
  }
  job.until = MayWait(job) ? *job.order.wait_until : clock_.Now();
  Attempt attempt = Try(job, effects);
  if (const auto* refusal = std::get_if<Refusal>(&attempt)) {
    const std::optional<absl::Time> until = WaitUntil(job, *refusal);
    if (!until) return Refuse(Extract(at).order, *refusal);
    StayUntil(job, *refusal, *until, effects);
    return std::nullopt;
  }
  std::vector<Finished> finished;
  Land(at, std::move(attempt), State::kQueued, finished);
  if (finished.empty()) return std::nullopt;
  return std::move(finished.front());
}

// Its time to ask has come, or its time is up.
void Admission::Attend(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects) {
  Job& job = at->second;
  const absl::Time now = clock_.Now();
  if (job.state != State::kQueued) {
    AnswerInTime(at, finished, effects);
    return;
  }
  if (now < job.until) {
    SetDue(job, job.until);
    AskInTime(job, effects);
    return;
  }
  // Once more, as one that does not wait: something may be there that nobody whose
  // turn it is needs.
  job.order.wait_until = std::nullopt;
  if (now >= job.order.answer_by) return AnswerInTime(at, finished, effects);
  Attempt attempt = Try(job, effects);
  if (const auto* refusal = std::get_if<Refusal>(&attempt)) {
    finished.push_back(Refuse(Extract(at).order, *refusal));
  } else {
    Land(at, std::move(attempt), State::kQueued, finished);
  }
}

std::vector<Admission::Finished> Admission::Tick(Effects& effects) {
  std::vector<Finished> finished;
  const absl::Time now = clock_.Now();
  if (options_.idle_ttl > absl::ZeroDuration()) {
    room_.EvictExpired(now - options_.idle_ttl, effects);
  }
  while (!dues_.empty() && dues_.begin()->first <= now) {
    Attend(jobs_.find(dues_.begin()->second), finished, effects);
  }
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    if (!queues_[heap].empty() && HasLessThanItsLimit(heap)) AskDriver(effects);
  }
  for (Finished& more : Pump(std::nullopt, effects)) finished.push_back(std::move(more));
  return finished;
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

absl::Time Admission::NextDue() const {
  absl::Time due = absl::InfiniteFuture();
  if (!dues_.empty()) due = std::min(due, dues_.begin()->first);
  bool any_waits = false;
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    due = std::min(due, queues_[heap].NextChange());
    if (queues_[heap].empty()) continue;
    any_waits = true;
    if (HasLessThanItsLimit(heap)) due = std::min(due, driver_asked_at_ + kDriverInterval);
  }
  // Those who did not give back what they were asked for are asked again.
  if (any_waits) due = std::min(due, caches_.NextAskable(clock_.Now()));
  if (options_.idle_ttl > absl::ZeroDuration()) {
    due = std::min(due, room_.pools().OldestSince() + options_.idle_ttl);
  }
  return due;
}

}  // namespace heapbroker

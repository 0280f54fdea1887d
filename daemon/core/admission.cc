// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/admission.h"

#include <algorithm>
#include <utility>

#include "daemon/core/segments.h"

namespace heapbroker {

Admission::Admission(const DeviceInfo& device, const AdmissionOptions& options, DeviceRoom& room,
                     ClientCaches& caches, const Clock& clock)
    : device_(device),
      options_(options),
      room_(room),
      caches_(caches),
      clock_(clock),
      planner_(device, options.matching, room),
      queues_(device.heaps.size(), WaitQueue(options.head_timeout)) {}

absl::Status Admission::Cancelled() {
  return absl::CancelledError("nobody waits for this call any more");
}

std::optional<Admission::Finished> Admission::Submit(Order order,
                                                     const std::optional<Refusal>& instead_of_later,
                                                     Effects& effects) {
  if (std::optional<Refusal> never = planner_.NeverFits(order)) {
    return Finish(std::move(order), RefusalStatus(*never));
  }
  Job job{std::move(order)};
  Attempt attempt = Try(job, effects, instead_of_later ? Allowed::kGrant : Allowed::kPromise);
  if (auto* blocks = std::get_if<Granted>(&attempt)) {
    return Finish(std::move(job.order), std::move(*blocks));
  }
  if (std::holds_alternative<NotAllowed>(attempt)) {
    return Finish(std::move(job.order), RefusalStatus(*instead_of_later));
  }
  if (auto* refusal = std::get_if<Refusal>(&attempt)) {
    const std::optional<absl::Time> until = WaitUntil(job, *refusal);
    if (until && !instead_of_later) {
      Enqueue(Insert(std::move(job)), *refusal, *until, effects);
      return std::nullopt;
    }
    return Finish(std::move(job.order), RefusalStatus(until ? *instead_of_later : *refusal));
  }
  Insert(std::move(job));
  return std::nullopt;
}

Admission::Attempt Admission::Try(Job& job, Effects& effects, Allowed allowed) {
  const Reserves reserves = ReservesFor(job);
  const auto reserve = [&](uint32_t heap) { return reserves[heap]; };
  if (allowed == Allowed::kWork) {
    std::optional<Plan> plan = planner_.MakeAtOnce(job.order, reserve);
    return plan ? Begin(job, *std::move(plan), effects) : Attempt(NotAllowed{});
  }
  std::variant<Plan, Refusal> made = planner_.Make(job.order, reserve);
  if (auto* refusal = std::get_if<Refusal>(&made)) {
    if (refusal->heap && HasLessThanItsLimit(*refusal->heap)) AskDriver(effects);
    return *refusal;
  }
  if (Plan& plan = std::get<Plan>(made); !IsAllowed(job.order, plan, allowed)) {
    planner_.Undo(plan);
    return NotAllowed{};
  }
  return Begin(job, std::get<Plan>(std::move(made)), effects);
}

Admission::Attempt Admission::Begin(Job& job, Plan plan, Effects& effects) {
  job.plan = std::move(plan);
  planner_.Take(job.order, job.plan, effects);
  CountRequests(job);
  if (!job.plan.is_promise()) return Start(job, effects);
  job.state = State::kPromised;
  return Working{};
}

bool Admission::IsAllowed(const Order& order, const Plan& plan, Allowed allowed) {
  if (allowed == Allowed::kPromise) return true;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    if (!plan.parts[i].is_hit()) return false;
    if (allowed == Allowed::kGrant && order.wants[i].zeroed) return false;
  }
  return true;
}

// All that the plan needs is there.
Admission::Attempt Admission::Start(Job& job, Effects& effects) {
  const Order& order = job.order;
  FillOrder fill{order.id, {}};
  for (size_t i = 0; i < job.plan.parts.size(); ++i) {
    const Part& part = job.plan.parts[i];
    const Want& want = order.wants[i];
    if (part.is_hit() && !want.zeroed) continue;
    FillItem item{want.ClassOn(part.memory_type), part.made_for, part.exact, std::nullopt};
    if (part.is_hit()) item.reuse = part.hit->memory;
    fill.items.push_back(std::move(item));
    job.items.push_back(i);
  }
  if (!fill.items.empty()) {
    job.state = State::kInWork;
    effects.fill.push_back(std::move(fill));
    return Working{};
  }
  Blocks blocks;
  const absl::Time now = clock_.Now();
  for (size_t i = 0; i < job.plan.parts.size(); ++i) {
    Block& block = *job.plan.parts[i].hit;
    block.id = NextBlock();
    blocks.push_back({std::move(block), order.wants[i].size, order.request, now});
  }
  return blocks;
}

Admission::Finished Admission::Finish(Order order, absl::StatusOr<Blocks> blocks) {
  if (blocks.ok()) {
    ++totals_.granted;
  } else if (absl::IsCancelled(blocks.status())) {
    ++totals_.cancelled;
  } else if (const std::optional<Refusal> refusal = RefusalOf(blocks.status());
             refusal && refusal->limit != LimitKind::kDriver) {
    ++(refusal->kind == RefusalKind::kNeverFits ? totals_.never_fit : totals_.limit_reached);
  } else {
    ++totals_.failed;
  }
  return {std::move(order), std::move(blocks)};
}

Admission::Finished Admission::Refuse(Order order, const Refusal& refusal) {
  const bool padded = std::any_of(order.wants.begin(), order.wants.end(),
                                  [](const Want& want) { return want.needs > want.exact(); });
  const absl::string_view cause = padded ? kDriverPads : "";
  return Finish(std::move(order), RefusalStatus(refusal, cause));
}

// Once for each order, when it is certain what serves it.
void Admission::CountRequests(Job& job) {
  if (std::exchange(job.counted, true)) return;
  for (const Part& part : job.plan.parts) {
    for (const auto& [pool, reason] : part.passed) room_.pools().pool(pool).CountRequest(reason);
    room_.pools().pool(part.pool).CountRequest(
        part.is_hit() ? std::nullopt : std::optional<MissReason>(part.reason));
  }
}

Admission::Jobs::iterator Admission::Insert(Job job) {
  const OrderId id = job.order.id;
  by_call_[{job.order.session, job.order.call}] = id;
  if (job.state == State::kPromised) promised_.insert(id);
  if (job.state == State::kRetrying) retrying_.insert(id);
  unfinished_blocks_[job.order.tenant] += job.order.wants.size();
  const auto at = jobs_.emplace(id, std::move(job)).first;
  if (at->second.state != State::kInWork) SetDue(at->second, at->second.order.answer_by);
  return at;
}

Admission::Job Admission::Extract(Jobs::iterator at) {
  SetDue(at->second, absl::InfiniteFuture());
  Job job = std::move(at->second);
  const OrderId id = at->first;
  by_call_.erase({job.order.session, job.order.call});
  promised_.erase(id);
  retrying_.erase(id);
  if (job.state == State::kQueued) LeaveQueue(job);
  jobs_.erase(at);
  const auto blocks = unfinished_blocks_.find(job.order.tenant);
  blocks->second -= job.order.wants.size();
  if (blocks->second == 0) unfinished_blocks_.erase(blocks);
  return job;
}

// What an attempt of a job that waits has led to.
void Admission::Land(Jobs::iterator at, Attempt attempt, State before,
                     std::vector<Finished>& finished) {
  Job& job = at->second;
  const State after = std::exchange(job.state, before);
  if (auto* blocks = std::get_if<Granted>(&attempt)) {
    finished.push_back(Finish(Extract(at).order, std::move(*blocks)));
    return;
  }
  if (before == State::kQueued) LeaveQueue(job);
  promised_.erase(job.order.id);
  retrying_.erase(job.order.id);
  job.state = after;
  if (after == State::kPromised) promised_.insert(job.order.id);
  // What the device is at work for ends with that.
  SetDue(job, after == State::kPromised ? job.order.answer_by : absl::InfiniteFuture());
}

std::vector<Admission::Finished> Admission::Cancel(SessionId session, std::optional<CallId> call,
                                                   bool& made_room, Effects& effects) {
  std::vector<OrderId> meant;
  const auto first = by_call_.lower_bound({session, call.value_or(CallId())});
  for (auto it = first; it != by_call_.end() && it->first.first == session; ++it) {
    if (call && it->first.second != *call) break;
    meant.push_back(it->second);
  }
  std::vector<Finished> finished;
  for (OrderId id : meant) {
    const auto at = jobs_.find(id);
    if (at->second.state == State::kInWork) {
      at->second.cancelled = true;
      continue;
    }
    // Of those in a queue only the head keeps anything from the others.
    made_room |= at->second.state != State::kQueued || Head(at->second.heap) == id;
    Job job = Extract(at);
    GiveUpPlan(job, effects);
    finished.push_back(Finish(std::move(job.order), Cancelled()));
  }
  return finished;
}

size_t Admission::UnfinishedBlocks(TenantId tenant) const {
  const auto found = unfinished_blocks_.find(tenant);
  return found == unfinished_blocks_.end() ? 0 : found->second;
}

void Admission::AddStats(DeviceStats& stats) const {
  stats.requests = totals_;
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    stats.heaps[heap].waiting_requests = queues_[heap].size();
    stats.heaps[heap].idle_in_clients = caches_.on(heap);
  }
}

}  // namespace heapbroker

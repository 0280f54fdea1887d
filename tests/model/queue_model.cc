// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/model/queue_model.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr size_t kRestingTried = 16;

Bytes Less(Bytes a, Bytes b) { return a > b ? a - b : Bytes(); }

bool Needs(const QueueModel::Request& request, uint32_t heap) {
  return std::any_of(request.needs.begin(), request.needs.end(),
                     [heap](const QueueModel::Need& need) { return need.heap == heap; });
}

Bytes NeededOn(const QueueModel::Request& request, uint32_t heap) {
  Bytes sum;
  for (const QueueModel::Need& need : request.needs) {
    if (need.heap == heap) sum += need.bytes;
  }
  return sum;
}

}  // namespace

void QueueModel::Begin(absl::Time now) {
  now_ = now;
  answers_.clear();
  asks_.clear();
}

void QueueModel::Ask(const Request& request, std::optional<uint32_t> heap) {
  if (NeverFits(request)) return Answer(request.call, absl::StatusCode::kResourceExhausted);
  const bool may_wait = MayWait(request);
  if (Fits(request, may_wait)) {
    Grant(request);
    return Pump();
  }
  Waiter waiter;
  waiter.request = request;
  const std::optional<absl::Time> until = WaitUntil(waiter, may_wait);
  EXPECT_EQ(until.has_value(), heap.has_value()) << "whether call " << request.call << " may wait";
  if (!until || !heap) return Answer(request.call, absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Needs(request, *heap));
  waiter.heap = *heap;
  waiter.arrived = ++last_;
  PutLast(waiter);
  Waiter& waits = waiters_.emplace(request.call, waiter).first->second;
  StayUntil(waits, *until);
}

void QueueModel::Repeat(CallId from, const Request& request) {
  Answer(from, absl::StatusCode::kAborted);
  auto node = waiters_.extract(from);
  Waiter& waiter = node.mapped();
  node.key() = request.call;
  for (Queue& queue : queues_) {
    if (queue.head == from) queue.head = request.call;
  }
  waiter.request.call = request.call;
  waiter.request.wait_until = request.wait_until;
  waiter.request.answer_by = request.answer_by;
  waiters_.insert(std::move(node));
  if (Serve(request.call)) return Pump();
  const std::optional<absl::Time> until = WaitUntil(waiter, MayWait(waiter.request));
  if (until) return StayUntil(waiter, *until);
  Leave(request.call);
  Answer(request.call, absl::StatusCode::kResourceExhausted);
  Pump();
}

void QueueModel::Release(SessionId session, const Need& block, Bytes held) {
  Free(block);
  if (const auto found = caches_.find(session); found != caches_.end()) {
    SetIdle(found->second, std::min(found->second.idle, held));
  }
  Pump();
}

void QueueModel::Cancel(CallId call) {
  Elect();
  const bool was_head = queues_[waiters_.at(call).heap].head == call;
  Leave(call);
  Answer(call, absl::StatusCode::kCancelled);
  // For nobody else anything was kept.
  if (was_head) Pump();
}

void QueueModel::EndSession(SessionId session, const std::vector<Need>& held) {
  for (const Need& block : held) Free(block);
  caches_.erase(session);
  for (CallId call : Waiting()) {
    if (waiters_.at(call).request.session != session) continue;
    Leave(call);
    Answer(call, absl::StatusCode::kCancelled);
  }
  Pump();
}

void QueueModel::Report(SessionId session, Bytes idle) {
  SetIdle(caches_[session], idle);
  Pump();
}

// What it has less of was given back.
void QueueModel::SetIdle(Cache& cache, Bytes idle) {
  cache.asked = Less(cache.asked, Less(cache.idle, idle));
  cache.idle = idle;
}

void QueueModel::Tick() {
  while (true) {
    std::optional<std::pair<std::pair<absl::Time, Place>, CallId>> first;
    for (const auto& [call, waiter] : waiters_) {
      const std::pair<absl::Time, Place> due(waiter.due, waiter.arrived);
      if (waiter.due <= now_ && (!first || due < first->first)) first = {due, call};
    }
    if (!first) break;
    Attend(first->second);
  }
  Pump();
}

// Its last moment to have clients asked, or the end of its time.
void QueueModel::Attend(CallId call) {
  Waiter& waiter = waiters_.at(call);
  if (now_ < waiter.until) {
    waiter.due = waiter.until;
    return AskClients(waiter, /*may_wait=*/false);
  }
  waiter.request.wait_until = std::nullopt;
  if (Serve(call)) return;
  Leave(call);
  Answer(call, absl::StatusCode::kResourceExhausted);
}

absl::Time QueueModel::NextChange() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Queue& queue : queues_) {
    next = std::min(next, queue.rest_until);
    if (queue.head) next = std::min(next, queue.elected_at + rules_.head_timeout);
  }
  for (const auto& [call, waiter] : waiters_) next = std::min(next, waiter.due);
  if (waiters_.empty()) return next;
  for (const auto& [session, cache] : caches_) {
    if (Askable(cache) < cache.idle) next = std::min(next, cache.asked_until);
  }
  return next;
}

std::vector<CallId> QueueModel::Waiting() const {
  std::vector<CallId> calls;
  for (const auto& [call, waiter] : waiters_) calls.push_back(call);
  return calls;
}

bool QueueModel::MayWait(const Request& request) const {
  return request.wait_until && *request.wait_until > now_;
}

bool QueueModel::NeverFits(const Request& request) const {
  if (request.needs.size() > rules_.allocations) return true;
  for (uint32_t heap = 0; heap < rules_.heaps.size(); ++heap) {
    if (NeededOn(request, heap) > rules_.heaps[heap]) return true;
  }
  return false;
}

bool QueueModel::AnyOf(uint32_t heap, std::optional<TenantId> tenant, bool rests) const {
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const auto& entry) {
    const Waiter& waiter = entry.second;
    return waiter.heap == heap && waiter.rests == rests &&
           (!tenant || waiter.request.tenant == *tenant);
  });
}

void QueueModel::PutLast(Waiter& waiter) {
  waiter.rests = false;
  waiter.place = ++last_;
  queues_[waiter.heap].turns.try_emplace(waiter.request.tenant, ++last_);
}

void QueueModel::Leave(CallId call) {
  const Waiter waiter = waiters_.at(call);
  waiters_.erase(call);
  Queue& queue = queues_[waiter.heap];
  const TenantId tenant = waiter.request.tenant;
  if (!AnyOf(waiter.heap, tenant, /*rests=*/false)) queue.turns.erase(tenant);
  if (!AnyOf(waiter.heap, std::nullopt, /*rests=*/true)) queue.rest_until = absl::InfiniteFuture();
  if (queue.head != call) return;
  queue.head = std::nullopt;
  if (queue.turns.contains(tenant)) queue.turns[tenant] = ++last_;
}

void QueueModel::Grant(const Request& request) {
  for (const Need& need : request.needs) used_[need.heap] += need.bytes;
  allocations_ += request.needs.size();
  Answer(request.call, absl::StatusCode::kOk);
}

void QueueModel::Free(const Need& block) {
  used_[block.heap] -= block.bytes;
  --allocations_;
}

void QueueModel::Elect() {
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) ElectOn(heap);
}

void QueueModel::ElectOn(uint32_t heap) {
  Queue& queue = queues_[heap];
  if (queue.rest_until <= now_) EndRest(heap);
  if (queue.head && queue.elected_at + rules_.head_timeout <= now_) BeginRest(heap);
  while (!queue.head) {
    std::optional<std::pair<Place, std::optional<TenantId>>> next;
    for (const auto& [tenant, place] : queue.turns) {
      if (!next || place < next->first) next = {place, tenant};
    }
    if (queue.rest && (!next || *queue.rest < next->first)) next = {*queue.rest, std::nullopt};
    if (!next) return;
    if (!next->second) {
      queue.rest = std::nullopt;
      if (AnyOf(heap, std::nullopt, /*rests=*/true)) {
        queue.rest_until = now_ + rules_.head_timeout;
      }
      continue;
    }
    const Waiter* best = nullptr;
    for (const auto& [call, waiter] : waiters_) {
      if (waiter.heap != heap || waiter.rests || waiter.request.tenant != *next->second) continue;
      const bool better =
          best == nullptr || waiter.request.priority > best->request.priority ||
          (waiter.request.priority == best->request.priority && waiter.place < best->place);
      if (better) best = &waiter;
    }
    queue.head = best->request.call;
    queue.elected_at = now_;
    queue.elected = ++last_;
  }
}

void QueueModel::BeginRest(uint32_t heap) {
  Queue& queue = queues_[heap];
  Waiter& waiter = waiters_.at(*queue.head);
  queue.head = std::nullopt;
  waiter.rests = true;
  waiter.place = ++last_;
  const TenantId tenant = waiter.request.tenant;
  if (AnyOf(heap, tenant, /*rests=*/false)) {
    queue.turns[tenant] = ++last_;
  } else {
    queue.turns.erase(tenant);
  }
  if (!queue.rest) queue.rest = ++last_;
}

void QueueModel::EndRest(uint32_t heap) {
  queues_[heap].rest_until = absl::InfiniteFuture();
  std::map<Place, CallId> resting;
  for (const auto& [call, waiter] : waiters_) {
    if (waiter.heap == heap && waiter.rests) resting[waiter.place] = call;
  }
  for (const auto& [place, call] : resting) PutLast(waiters_.at(call));
}

// Those to whom the request has to leave what they need.
std::vector<const QueueModel::Request*> QueueModel::HeadsBefore(const Request& request) const {
  std::vector<const Request*> heads;
  Place own = UINT64_MAX;
  for (const Queue& queue : queues_) {
    if (queue.head == request.call) own = queue.elected;
  }
  for (const Queue& queue : queues_) {
    if (queue.head && *queue.head != request.call && queue.elected < own) {
      heads.push_back(&waiters_.at(*queue.head).request);
    }
  }
  return heads;
}

bool QueueModel::Fits(const Request& request, bool may_wait) {
  Elect();
  const std::vector<const Request*> heads = HeadsBefore(request);
  const bool is_head = std::any_of(queues_.begin(), queues_.end(),
                                   [&](const Queue& queue) { return queue.head == request.call; });
  uint64_t allocations = allocations_ + request.needs.size();
  for (const Request* head : heads) allocations += head->needs.size();
  if (allocations > rules_.allocations) return false;
  for (uint32_t heap = 0; heap < queues_.size(); ++heap) {
    if (!Needs(request, heap)) continue;
    // Who can wait goes behind those who do.
    if (may_wait && !is_head && queues_[heap].head) return false;
    Bytes bytes = used_[heap] + NeededOn(request, heap);
    for (const Request* head : heads) bytes += NeededOn(*head, heap);
    if (bytes > rules_.heaps[heap]) return false;
  }
  return true;
}

std::optional<QueueModel::Lack> QueueModel::LackOf(const Request& request, bool may_wait) {
  if (queues_.size() > 1 || Fits(request, may_wait)) return std::nullopt;
  const Queue& queue = queues_.front();
  Bytes kept;
  uint64_t allocations = allocations_;
  for (const Request* head : HeadsBefore(request)) {
    kept += NeededOn(*head, 0);
    allocations += head->needs.size();
  }
  Bytes free = Less(Less(rules_.heaps[0], used_[0]), kept);
  if (may_wait && queue.head && queue.head != request.call) free = Bytes();
  const Bytes requested = NeededOn(request, 0);
  if (requested <= free && allocations + request.needs.size() > rules_.allocations) {
    return std::nullopt;
  }
  return Lack{requested, free};
}

std::optional<absl::Time> QueueModel::WaitUntil(const Waiter& waiter, bool may_wait) {
  absl::Time until = now_;
  if (may_wait) {
    until = *waiter.request.wait_until;
  } else if (const std::optional<Lack> lack = LackOf(waiter.request, may_wait)) {
    Bytes askable;
    for (const auto& [session, cache] : caches_) askable += Askable(cache);
    if (askable > Bytes() && lack->requested <= lack->free + askable) {
      until = now_ + rules_.give_back_time;
    }
    until = std::max(until, waiter.asked_until);
  }
  until = std::min(until, waiter.request.answer_by);
  if (until <= now_) return std::nullopt;
  return until;
}

void QueueModel::StayUntil(Waiter& waiter, absl::Time until) {
  waiter.until = until;
  const absl::Time ask_at = until - rules_.give_back_time;
  waiter.due = ask_at > now_ ? ask_at : until;
  Elect();
  const bool may_wait = MayWait(waiter.request);
  if (!may_wait || queues_[waiter.heap].head == waiter.request.call) {
    AskClients(waiter, may_wait);
  } else if (waiter.due == until) {
    AskClients(waiter, /*may_wait=*/false);
  }
}

Bytes QueueModel::Askable(const Cache& cache) const {
  return cache.asked_until <= now_ ? cache.idle : Less(cache.idle, cache.asked);
}

void QueueModel::AskClients(Waiter& waiter, bool may_wait) {
  const std::optional<Lack> lack = LackOf(waiter.request, may_wait);
  if (!lack || lack->requested <= lack->free) return;
  if (waiter.asked_until <= now_) waiter.asked = Bytes();
  Bytes wanted = Less(lack->requested - lack->free, waiter.asked);
  std::vector<std::pair<Bytes, SessionId>> by_size;
  for (const auto& [session, cache] : caches_) by_size.emplace_back(cache.idle, session);
  std::sort(by_size.rbegin(), by_size.rend());
  for (const auto& [idle, session] : by_size) {
    Cache& cache = caches_.at(session);
    const Bytes bytes = std::min(wanted, Askable(cache));
    if (bytes == Bytes()) continue;
    cache.asked = cache.asked_until <= now_ ? bytes : cache.asked + bytes;
    cache.asked_until = waiter.asked_until = now_ + rules_.give_back_time;
    waiter.asked += bytes;
    wanted -= bytes;
    asks_.emplace(session, bytes);
  }
}

bool QueueModel::Serve(CallId call) {
  const Request request = waiters_.at(call).request;
  if (!Fits(request, MayWait(request))) return false;
  Leave(call);
  Grant(request);
  return true;
}

void QueueModel::Pump() {
  bool served = true;
  while (served) {
    served = false;
    for (uint32_t heap = 0; heap < queues_.size(); ++heap) served |= PumpOn(heap);
  }
}

bool QueueModel::PumpOn(uint32_t heap) {
  bool served = false;
  for (ElectOn(heap); queues_[heap].head; ElectOn(heap)) {
    const CallId head = *queues_[heap].head;
    if (!Serve(head)) {
      AskClients(waiters_.at(head), MayWait(waiters_.at(head).request));
      return served;
    }
    served = true;
  }
  // Nobody's turn: whoever has rested longest, of what there is.
  std::map<Place, CallId> resting;
  for (const auto& [call, waiter] : waiters_) {
    if (waiter.heap == heap && waiter.rests) resting[waiter.place] = call;
  }
  size_t tried = 0;
  bool asked = false;
  for (const auto& [place, call] : resting) {
    if (++tried > kRestingTried) break;
    if (Serve(call)) {
      served = true;
    } else if (!std::exchange(asked, true)) {
      AskClients(waiters_.at(call), MayWait(waiters_.at(call).request));
    }
  }
  return served;
}

}  // namespace heapbroker

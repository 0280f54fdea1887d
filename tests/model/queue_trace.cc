// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/model/queue_trace.h"

#include <iterator>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/core/pool_spec.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr size_t kSessions = 6;
constexpr uint32_t kTenants = 3;
constexpr absl::Duration kWaits[] = {absl::Milliseconds(100), absl::Milliseconds(500),
                                     absl::Milliseconds(700), absl::Seconds(3),
                                     absl::Seconds(8),        absl::Seconds(30)};
constexpr Bytes kBudgets[] = {MiB(12), MiB(24), MiB(40)};
constexpr uint64_t kCounts[] = {5, 9, 1000};

// A memory type on each heap.
DeviceInfo DeviceOf(size_t heaps) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps.assign(heaps, info.heaps.front());
  info.memory_types.assign(heaps, info.memory_types.front());
  for (uint32_t i = 0; i < heaps; ++i) info.memory_types[i].heap = i;
  return info;
}

std::string TextOf(const std::map<CallId, absl::StatusCode>& answers) {
  std::string text;
  for (const auto& [call, code] : answers) {
    absl::StrAppend(&text, " call ", call.value(), " ", absl::StatusCodeToString(code));
  }
  return text;
}

std::string TextOf(const std::multimap<SessionId, Bytes>& asks) {
  std::string text;
  for (const auto& [session, bytes] : asks) {
    absl::StrAppend(&text, " session ", session.value(), " for ", FormatBytes(bytes));
  }
  return text;
}

}  // namespace

QueueTrace::QueueTrace(uint32_t seed) : random_(seed) {
  rules_.heaps.resize(1 + Draw(3));
  for (Bytes& heap : rules_.heaps) heap = kBudgets[Draw(std::size(kBudgets))];
  rules_.allocations = kCounts[Draw(std::size(kCounts))];
  rules_.head_timeout = absl::Seconds(1 + Draw(5));
  rules_.give_back_time = absl::Milliseconds(500);
  text_ = absl::StrCat(rules_.heaps.size(), " heaps, ", rules_.allocations,
                       " allocations, turns of ", absl::FormatDuration(rules_.head_timeout));
  model_ = std::make_unique<QueueModel>(rules_);
  device_ = std::make_unique<SimulatedDevice>(DeviceOf(rules_.heaps.size()));
  LedgerOptions options;
  for (Bytes heap : rules_.heaps) options.admission.heaps.push_back(HeapLimit{heap});
  options.admission.count_limits = {{LimitKind::kMaxAllocationCount, rules_.allocations}};
  options.admission.matching.matching = Matching::kExact;
  options.admission.head_timeout = rules_.head_timeout;
  options.admission.give_back_time = rules_.give_back_time;
  const auto specs = ParsePoolSpecs("*=*;*;0");
  EXPECT_THAT(specs, IsOk());
  if (specs.ok()) options.admission.pools = ResolvePools(*specs, device_->info()).pools;
  broker_ = std::make_unique<DeviceBroker>(
      options, BrokerPorts{*device_, executor_, events_, clock_, alarm_});
  while (sessions_.size() < kSessions) Connect();
}

void QueueTrace::Connect() {
  const SessionId session(++last_session_);
  const TenantId tenant(1000 + Draw(kTenants));
  EXPECT_THAT(broker_->AddSession(session, tenant), IsOk());
  sessions_[session].tenant = tenant;
}

SessionId QueueTrace::AnySession() {
  auto it = sessions_.begin();
  std::advance(it, Draw(static_cast<uint32_t>(sessions_.size())));
  return it->first;
}

Bytes QueueTrace::HeldOn(const Session& session, uint32_t heap) const {
  Bytes sum;
  for (const auto& [block, need] : session.held) {
    if (need.heap == heap) sum += need.bytes;
  }
  return sum;
}

void QueueTrace::Step() {
  const uint32_t what = Draw(100);
  if (what < 38) return Allocate();
  if (what < 60) return Release();
  if (what < 63) return Cancel();
  if (what < 68) return Repeat();
  if (what < 78) return Report();
  if (what < 79) return Disconnect();
  PassTime();
}

void QueueTrace::Do(const std::function<void()>& operation) {
  answers_.clear();
  asks_.clear();
  operation();
  executor_.RunAll();
  for (auto& [session, event] : events_.Take()) {
    if (const auto* done = std::get_if<AllocateDone>(&event)) {
      Hear(done->call, done->grant);
    } else if (const auto* wanted = std::get_if<GiveBackWanted>(&event)) {
      EXPECT_EQ(wanted->deadline, clock_.Now() + rules_.give_back_time);
      if (HasOneHeap()) asks_.emplace(session, wanted->bytes);
    }
  }
}

void QueueTrace::Hear(CallId call, const absl::StatusOr<Grant>& grant) {
  EXPECT_TRUE(answers_.emplace(call, grant.status().code()).second) << "answered twice: " << call;
  const auto request = requests_.find(call);
  ASSERT_NE(request, requests_.end()) << "answered twice: " << call;
  if (grant.ok()) {
    ++seen_.grants;
    const auto session = sessions_.find(request->second.session);
    for (size_t i = 0; i < grant->blocks.size() && session != sessions_.end(); ++i) {
      session->second.held.emplace(grant->blocks[i].id, request->second.needs[i]);
    }
  } else if (absl::IsResourceExhausted(grant.status())) {
    ++seen_.refused;
  }
  requests_.erase(request);
}

void QueueTrace::Compare() {
  const absl::Time now = clock_.Now();
  EXPECT_TRUE(answers_ == model_->answers()) << "at " << now << " the core says" << TextOf(answers_)
                                             << "; expected was" << TextOf(model_->answers());
  EXPECT_TRUE(asks_ == model_->asks()) << "at " << now << " the core asks" << TextOf(asks_)
                                       << "; expected was" << TextOf(model_->asks());
  seen_.asks += asks_.size();
  uint64_t waiting = 0;
  for (const HeapStats& heap : broker_->Stats().heaps) waiting += heap.waiting_requests;
  EXPECT_EQ(waiting, model_->Waiting().size());
  due_ = std::min(due_, alarm_.TakeTime());
  EXPECT_LE(due_, model_->NextChange()) << "the alarm would be late";
}

void QueueTrace::DrawTerms(QueueModel::Request& request) {
  request.wait_until = std::nullopt;
  request.answer_by = absl::InfiniteFuture();
  const absl::Time until = clock_.Now() + kWaits[Draw(std::size(kWaits))];
  if (!OneIn(3)) request.wait_until = until;
  if (!OneIn(3)) request.answer_by = OneIn(3) ? until + absl::Milliseconds(300) : until;
}

AllocateRequest QueueTrace::AskOf(const QueueModel::Request& request) {
  AllocateRequest ask;
  ask.priority = request.priority;
  ask.wait_until = request.wait_until;
  ask.answer_by = request.answer_by;
  for (const QueueModel::Need& need : request.needs) {
    BlockRequest block;
    block.size = need.bytes;
    block.memory = MemoryTypeIndex{need.heap};
    ask.blocks.push_back(block);
  }
  return ask;
}

void QueueTrace::Allocate() {
  QueueModel::Request request;
  request.call = CallId(++last_call_);
  request.session = AnySession();
  request.tenant = sessions_.at(request.session).tenant;
  request.priority = static_cast<Priority>(Draw(kPriorityCount));
  DrawTerms(request);
  for (uint32_t left = OneIn(4) ? 2 + Draw(2) : 1; left > 0; --left) {
    const Bytes size = MiB(1 + Draw(OneIn(4) ? 14 : 6));
    request.needs.push_back({Draw(static_cast<uint32_t>(rules_.heaps.size())), size});
  }
  AllocateRequest ask = AskOf(request);
  ask.request_id = ids_[request.call] = RequestId(request.call.value());
  const DeviceStats before = broker_->Stats();
  requests_.emplace(request.call, request);
  Do([&] {
    const auto outcome = broker_->Allocate(request.session, request.call, ask);
    if (!outcome.ok()) Hear(request.call, outcome.status());
  });
  std::optional<uint32_t> queue;
  const DeviceStats after = broker_->Stats();
  for (uint32_t heap = 0; heap < rules_.heaps.size(); ++heap) {
    if (after.heaps[heap].waiting_requests > before.heaps[heap].waiting_requests) queue = heap;
  }
  if (queue) ++seen_.waited;
  model_->Begin(clock_.Now());
  model_->Ask(request, queue);
  Compare();
}

void QueueTrace::Repeat() {
  const std::vector<CallId> waiting = model_->Waiting();
  if (waiting.empty()) return;
  const CallId from = waiting[Draw(static_cast<uint32_t>(waiting.size()))];
  QueueModel::Request request = model_->waiting(from);
  request.call = CallId(++last_call_);
  DrawTerms(request);
  AllocateRequest ask = AskOf(request);
  ask.request_id = ids_.at(from);
  ids_[request.call] = ids_.at(from);
  requests_.emplace(request.call, request);
  ++seen_.repeated;
  Do([&] {
    const auto outcome = broker_->Allocate(request.session, request.call, ask);
    if (!outcome.ok()) Hear(request.call, outcome.status());
  });
  model_->Begin(clock_.Now());
  model_->Repeat(from, request);
  Compare();
}

void QueueTrace::Release() {
  const SessionId session = AnySession();
  auto& held = sessions_.at(session).held;
  if (held.empty()) return;
  auto it = held.begin();
  std::advance(it, Draw(static_cast<uint32_t>(held.size())));
  const BlockId block = it->first;
  const QueueModel::Need need = it->second;
  held.erase(it);
  const Bytes left = HeldOn(sessions_.at(session), need.heap);
  Do([&] { EXPECT_THAT(broker_->Release(session, {block}), IsOk()); });
  model_->Begin(clock_.Now());
  model_->Release(session, need, left);
  Compare();
}

void QueueTrace::Cancel() {
  const std::vector<CallId> waiting = model_->Waiting();
  if (waiting.empty()) return;
  const CallId call = waiting[Draw(static_cast<uint32_t>(waiting.size()))];
  Do([&] { broker_->Cancel(model_->waiting(call).session, call); });
  model_->Begin(clock_.Now());
  model_->Cancel(call);
  Compare();
}

void QueueTrace::Disconnect() {
  const SessionId session = AnySession();
  std::vector<QueueModel::Need> held;
  for (const auto& [block, need] : sessions_.at(session).held) held.push_back(need);
  sessions_.erase(session);
  Do([&] { broker_->EndSession(session); });
  model_->Begin(clock_.Now());
  model_->EndSession(session, held);
  Compare();
  Connect();
}

void QueueTrace::Report() {
  if (!HasOneHeap()) return;
  const SessionId session = AnySession();
  const Bytes held = HeldOn(sessions_.at(session), 0);
  const Bytes idle(held.count() / (1 + Draw(3)));
  Do([&] { EXPECT_THAT(broker_->ReportIdle(session, {{0, idle}}), IsOk()); });
  model_->Begin(clock_.Now());
  model_->Report(session, idle);
  Compare();
}

// The alarm is on time, or late.
void QueueTrace::PassTime() {
  const absl::Time end = clock_.Now() + absl::Milliseconds(Draw(OneIn(4) ? 4000 : 700));
  const bool late = OneIn(8);
  while (due_ <= end && !::testing::Test::HasFailure()) {
    clock_.Advance((late ? end : std::max(due_, clock_.Now())) - clock_.Now());
    due_ = absl::InfiniteFuture();
    Do([&] { broker_->Tick(); });
    model_->Begin(clock_.Now());
    model_->Tick();
    Compare();
  }
  clock_.Advance(end - clock_.Now());
}

}  // namespace heapbroker

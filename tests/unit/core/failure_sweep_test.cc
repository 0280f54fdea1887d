// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Every call on the device fails in its turn, once or from then on: nothing leaks,
// everybody is answered, and the numbers stay right.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/device_broker.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/core/failing_device.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001};
constexpr TenantId kBob{1002};
constexpr Bytes kBudget = MiB(16);

// A broker and a device that fails as planned; scenarios play on it.
class Stage final : public EventSink {
 public:
  explicit Stage(const FailingDevice::Plan& plan)
      : device_(plan),
        code_(plan.code),
        broker_(Options(), {device_, executor_, *this, clock_, alarm_}) {}

  void Deliver(SessionId session, Event event) override {
    if (auto* done = std::get_if<AllocateDone>(&event)) {
      Answer(done->call, done->grant.status());
      if (done->grant.ok()) grants_[done->call] = *std::move(done->grant);
    } else if (auto* opened = std::get_if<OpenSegmentDone>(&event)) {
      Answer(opened->call, opened->segment.status());
      if (opened->segment.ok()) views_[opened->call] = *std::move(opened->segment);
    } else if (const auto* wanted = std::get_if<GiveBackWanted>(&event)) {
      wanted_.emplace_back(session, *wanted);
    }
  }

  SessionId Connect(TenantId tenant) {
    sessions_.push_back(SessionId(sessions_.size() + 1));
    EXPECT_THAT(broker_.AddSession(sessions_.back(), tenant), IsOk());
    return sessions_.back();
  }
  CallId Allocate(SessionId session, AllocateRequest request) {
    const CallId call = NewCall();
    auto outcome = broker_.Allocate(session, call, request);
    if (!outcome.ok()) Answer(call, outcome.status());
    if (!outcome.ok() || std::holds_alternative<Deferred>(*outcome)) return call;
    Answer(call, absl::OkStatus());
    grants_[call] = std::get<Grant>(*std::move(outcome));
    return call;
  }
  CallId Open(SessionId session, OpenMode mode, Bytes size) {
    const CallId call = NewCall();
    OpenSegmentRequest request;
    request.name = "weights";
    request.mode = mode;
    request.size = size;
    auto outcome = broker_.OpenSegment(session, call, request);
    if (!outcome.ok()) Answer(call, outcome.status());
    if (!outcome.ok() || std::holds_alternative<Deferred>(*outcome)) return call;
    Answer(call, absl::OkStatus());
    views_[call] = std::get<SegmentView>(*std::move(outcome));
    return call;
  }
  void ReleaseAll(SessionId session, CallId call) {
    std::vector<BlockId> blocks;
    if (!grants_.contains(call)) return;
    for (const GrantedBlock& block : grants_[call].blocks) blocks.push_back(block.id);
    EXPECT_THAT(broker_.Release(session, blocks), IsOk());
  }
  bool Granted(CallId call) const { return grants_.contains(call); }
  const SegmentView* View(CallId call) const {
    return views_.contains(call) ? &views_.at(call) : nullptr;
  }
  const std::vector<std::pair<SessionId, GiveBackWanted>>& wanted() const { return wanted_; }
  DeviceBroker& broker() { return broker_; }
  FakeClock& clock() { return clock_; }
  const FailingDevice& device() const { return device_; }

  // Whoever's job met an error is the one to be told of it.
  void Run() {
    while (true) {
      const uint64_t failures = device_.failures(), told = told_;
      if (!executor_.RunFree() && !executor_.RunAllocation()) return;
      if (code_ == absl::StatusCode::kInternal) {
        EXPECT_LE(told_ - told, device_.failures() - failures);
        EXPECT_TRUE(told_ > told || device_.failures() == failures || cancelled_ > 0);
      } else {
        EXPECT_TRUE(told_ == told || device_.failures() > failures);
      }
      CheckSums();
    }
  }

  void CheckSums() const {
    const DeviceStats stats = broker_.Stats();
    Bytes total;
    for (const PoolStats& pool : stats.pools) {
      total += pool.total();
      EXPECT_EQ(pool.requests, pool.hits + pool.total_misses());
      EXPECT_LE(pool.rounding, pool.leased);
    }
    EXPECT_EQ(total, stats.heaps[0].in_use);
    EXPECT_LE(stats.heaps[0].in_use, kBudget);
    EXPECT_LE(device_.counts().live_bytes, total);
  }

  // Everybody leaves: nothing may be left, and nobody without an answer.
  void End() {
    for (const SessionId session : sessions_) broker_.EndSession(session);
    for (int i = 0; i < 2; ++i) {
      broker_.EvictEverything();
      Run();
    }
    EXPECT_EQ(device_.counts().live, 0u);
    const DeviceStats stats = broker_.Stats();
    EXPECT_EQ(stats.allocations, 0u);
    EXPECT_EQ(stats.segments, 0u);
    EXPECT_EQ(stats.heaps[0].in_use, Bytes());
    EXPECT_EQ(stats.heaps[0].waiting_requests, 0u);
    for (const PoolStats& pool : stats.pools) EXPECT_EQ(pool.total(), Bytes()) << pool.name;
    EXPECT_EQ(answers_.size(), last_call_) << "a call was not answered";
    EXPECT_EQ(stats.requests.failed, told_);
  }

 private:
  static LedgerOptions Options() {
    LedgerOptions options;
    options.admission.heaps = {{kBudget, 900}};
    options.admission.count_limits = {{LimitKind::kMaxAllocationCount, 10}};
    return options;
  }
  CallId NewCall() { return CallId(++last_call_); }
  void Answer(CallId call, const absl::Status& status) {
    EXPECT_TRUE(answers_.emplace(call, status).second) << "answered twice: call " << call;
    const std::optional<Refusal> refusal = RefusalOf(status);
    if (absl::IsInternal(status) || (refusal && refusal->limit == LimitKind::kDriver)) {
      ++told_;
      EXPECT_EQ(status.code(), code_) << status;
    } else if (absl::IsCancelled(status) || absl::IsAborted(status)) {
      ++cancelled_;
    } else {
      EXPECT_TRUE(status.ok() || refusal || absl::IsNotFound(status)) << status;
    }
  }

  FailingDevice device_;
  const absl::StatusCode code_;
  FakeClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  DeviceBroker broker_;
  std::vector<SessionId> sessions_;
  std::map<CallId, absl::Status> answers_;
  std::map<CallId, Grant> grants_;
  std::map<CallId, SegmentView> views_;
  std::vector<std::pair<SessionId, GiveBackWanted>> wanted_;
  uint64_t last_call_ = 0;
  uint64_t told_ = 0;  // Of an error of the device.
  uint64_t cancelled_ = 0;
};

AllocateRequest Blocks(std::vector<Bytes> sizes) {
  AllocateRequest request;
  for (Bytes size : sizes) request.blocks.push_back({size, Bytes()});
  return request;
}

void SingleLease(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice);
  const CallId call = stage.Allocate(alice, Blocks({MiB(1) - Bytes(1)}));
  stage.Run();
  stage.ReleaseAll(alice, call);
}

void Batch(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice);
  const CallId first = stage.Allocate(alice, Blocks({MiB(1)}));
  stage.Run();
  stage.ReleaseAll(alice, first);
  // One of them is idle, the others are made.
  stage.Allocate(alice, Blocks({MiB(1), MiB(2) - Bytes(1), MiB(3), KiB(1)}));
  stage.Run();
}

void ZeroedHits(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice);
  const CallId call = stage.Allocate(alice, Blocks({MiB(1), MiB(2)}));
  stage.Run();
  stage.ReleaseAll(alice, call);
  AllocateRequest zeroed = Blocks({MiB(1), MiB(2), MiB(3)});
  for (BlockRequest& block : zeroed.blocks) block.zeroed = true;
  const CallId again = stage.Allocate(alice, zeroed);
  stage.Run();
  stage.ReleaseAll(alice, again);
}

void EvictionAndRetry(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice), bob = stage.Connect(kBob);
  const CallId call = stage.Allocate(alice, Blocks({MiB(5), MiB(5)}));
  stage.Run();
  stage.ReleaseAll(alice, call);
  stage.Allocate(bob, Blocks({MiB(4)}));  // Fits beside what is idle: a failure evicts that.
  stage.Allocate(bob, Blocks({MiB(8)}));  // Does not: waits for the eviction.
  stage.Run();
  stage.Allocate(alice, Blocks({MiB(5)}));
  stage.Run();
}

void SegmentWithWaiters(Stage& stage) {
  const SessionId first = stage.Connect(kAlice), second = stage.Connect(kAlice);
  std::vector<std::pair<SessionId, CallId>> calls;
  calls.emplace_back(first, stage.Open(first, OpenMode::kCreateOrAttach, MiB(3)));
  calls.emplace_back(second, stage.Open(second, OpenMode::kCreateOrAttach, MiB(3)));
  calls.emplace_back(second, stage.Open(second, OpenMode::kAttach, Bytes()));
  stage.Open(first, OpenMode::kAttachWait, Bytes());
  stage.Run();
  for (const auto& [session, call] : calls) {
    const SegmentView* const view = stage.View(call);
    if (view == nullptr || !view->writer) continue;
    EXPECT_THAT(stage.broker().SealSegment(session, view->id, Checksum{1, 1}), IsOk());
  }
  stage.Allocate(second, Blocks({MiB(14)}));
  stage.Run();
}

void DeathAtWork(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice), bob = stage.Connect(kAlice);
  stage.Allocate(alice, Blocks({MiB(2), MiB(2)}));
  stage.Open(alice, OpenMode::kCreateOrAttach, MiB(2));
  stage.Open(bob, OpenMode::kCreateOrAttach, MiB(2));
  stage.broker().EndSession(alice);
  stage.Run();
}

void RepeatedRequest(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice);
  AllocateRequest request = Blocks({MiB(1), MiB(2)});
  request.request_id = RequestId(7);
  stage.Allocate(alice, request);
  stage.Allocate(alice, request);
  stage.Run();
  const CallId last = stage.Allocate(alice, request);
  stage.Run();
  if (stage.Granted(last)) EXPECT_THAT(stage.broker().Undo(alice, RequestId(7)), IsOk());
}

void QueueWithDeadline(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice), bob = stage.Connect(kBob);
  const CallId held = stage.Allocate(alice, Blocks({MiB(12)}));
  stage.Run();
  AllocateRequest waits = Blocks({MiB(8)});
  waits.wait_until = stage.clock().Now() + absl::Seconds(1);
  stage.Allocate(bob, waits);
  stage.clock().Advance(absl::Seconds(2));
  stage.broker().Tick();
  waits.wait_until = stage.clock().Now() + absl::Seconds(1);
  stage.Allocate(bob, waits);
  stage.ReleaseAll(alice, held);
  stage.Run();
}

void GiveBack(Stage& stage) {
  const SessionId alice = stage.Connect(kAlice), bob = stage.Connect(kBob);
  const CallId held = stage.Allocate(alice, Blocks({MiB(12)}));
  stage.Run();
  const std::vector<IdleReport> idle = {{0, MiB(12)}};
  EXPECT_THAT(stage.broker().ReportIdle(alice, idle), IsOk());
  stage.Allocate(bob, Blocks({MiB(8)}));
  if (!stage.wanted().empty()) stage.ReleaseAll(alice, held);
  stage.Run();
  stage.clock().Advance(absl::Seconds(1));
  stage.broker().Tick();
  stage.Run();
}

struct Scenario {
  const char* name;
  void (*play)(Stage&);
};
constexpr Scenario kScenarios[] = {
    {"SingleLease", SingleLease},
    {"Batch", Batch},
    {"ZeroedHits", ZeroedHits},
    {"EvictionAndRetry", EvictionAndRetry},
    {"SegmentWithWaiters", SegmentWithWaiters},
    {"DeathAtWork", DeathAtWork},
    {"RepeatedRequest", RepeatedRequest},
    {"QueueWithDeadline", QueueWithDeadline},
    {"GiveBack", GiveBack},
};

using Parameters = std::tuple<Scenario, bool, absl::StatusCode>;
class FailureSweepTest : public ::testing::TestWithParam<Parameters> {};

TEST_P(FailureSweepTest, LeaksNothingAndAnswersEverybody) {
  const auto& [scenario, for_ever, code] = GetParam();
  uint64_t calls = 0;
  uint64_t n = 0;
  // Without a failure first, then with the n-th until there is no n-th any more.
  do {
    SCOPED_TRACE(n);
    Stage stage({n, for_ever, code});
    scenario.play(stage);
    stage.Run();
    stage.End();
    calls = stage.device().calls();
    ASSERT_GT(calls, 0u);
  } while (!HasFailure() && n++ < calls);
  EXPECT_GT(n, 2u);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, FailureSweepTest,
    ::testing::Combine(::testing::ValuesIn(kScenarios), ::testing::Bool(),
                       ::testing::Values(absl::StatusCode::kInternal,
                                         absl::StatusCode::kResourceExhausted)),
    [](const auto& parameter) {
      return std::string(std::get<0>(parameter.param).name) +
             (std::get<1>(parameter.param) ? "ForEver" : "Once") +
             (std::get<2>(parameter.param) == absl::StatusCode::kInternal ? "Internal"
                                                                          : "OutOfMemory");
    });

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A broker over a simulated device, driven by one thread.
#ifndef TESTS_UNIT_CORE_CORE_FIXTURE_H_
#define TESTS_UNIT_CORE_CORE_FIXTURE_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/recorded_events.h"
#include "tests/fakes/recorded_turns.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {

inline constexpr TenantId kAlice{1001};
inline constexpr TenantId kBob{1002};

class CoreTest : public ::testing::Test {
 protected:
  // The device's heap is 1 GiB; the budget is the test's choice.
  void Start(Bytes budget, DeviceInfo info = SimulatedDeviceInfo(), LedgerOptions options = {}) {
    options.admission.heaps.assign(info.heaps.size(), HeapLimit{budget});
    Start(std::move(options), std::move(info));
  }
  void Start(LedgerOptions options, DeviceInfo info = SimulatedDeviceInfo()) {
    device_ = std::make_unique<SimulatedDevice>(std::move(info));
    if (options.admission.count_limits.empty()) options.admission.count_limits = Allocations(4000);
    broker_ = std::make_unique<DeviceBroker>(
        options, BrokerPorts{*device_, executor_, events_, clock_, alarm_, &turns_});
  }

  static std::vector<ResolvedPool> PoolsFor(absl::string_view text, const DeviceInfo& device) {
    absl::StatusOr<std::vector<PoolSpec>> specs = ParsePoolSpecs(text);
    EXPECT_THAT(specs, IsOk());
    return specs.ok() ? ResolvePools(*specs, device).pools : std::vector<ResolvedPool>();
  }

  static std::vector<CountLimit> Allocations(uint64_t most) {
    return {{LimitKind::kMaxAllocationCount, most}};
  }

  SessionId NewSession(TenantId tenant) {
    const SessionId session(++last_session_);
    EXPECT_THAT(broker_->AddSession(session, tenant), IsOk());
    return session;
  }

  static BlockRequest Ask(Bytes size) {
    BlockRequest request;
    request.size = size;
    return request;
  }

  static AllocateRequest AllocateOf(std::vector<BlockRequest> blocks) {
    AllocateRequest request;
    request.blocks = std::move(blocks);
    return request;
  }

  // Runs whatever the request has to wait for.
  absl::StatusOr<Grant> Allocate(SessionId session, const std::vector<BlockRequest>& requests) {
    const CallId call = NewCall();
    auto outcome = broker_->Allocate(session, call, AllocateOf(requests));
    if (!outcome.ok()) return outcome.status();
    if (auto* grant = std::get_if<Grant>(&*outcome)) return *grant;
    executor_.RunAll();
    EXPECT_TRUE(events_.Has(call));
    return events_.grant(call);
  }
  absl::StatusOr<GrantedBlock> Allocate(SessionId session, Bytes size) {
    absl::StatusOr<Grant> grant = Allocate(session, {Ask(size)});
    if (!grant.ok()) return grant.status();
    return grant->blocks.front();
  }

  // Starts a request and leaves it where it is.
  CallId StartAllocate(SessionId session, Bytes size) {
    const CallId call = NewCall();
    auto outcome = broker_->Allocate(session, call, AllocateOf({Ask(size)}));
    EXPECT_THAT(outcome, IsOk());
    EXPECT_TRUE(outcome.ok() && std::holds_alternative<Deferred>(*outcome));
    return call;
  }

  // One that may wait for what others hold, as long as there is anyone to answer.
  AllocateRequest WaitingFor(Bytes size, absl::Duration time) const {
    AllocateRequest request = AllocateOf({Ask(size)});
    request.wait_until = request.answer_by = clock_.Now() + time;
    return request;
  }
  CallId Start(SessionId session, const AllocateRequest& request) {
    const CallId call = NewCall();
    auto outcome = broker_->Allocate(session, call, request);
    EXPECT_THAT(outcome, IsOk());
    EXPECT_TRUE(outcome.ok() && std::holds_alternative<Deferred>(*outcome));
    return call;
  }
  CallId StartWaiting(SessionId session, Bytes size, absl::Duration time = absl::Seconds(60)) {
    return Start(session, WaitingFor(size, time));
  }
  void AdvanceAndTick(absl::Duration by) {
    clock_.Advance(by);
    broker_->Tick();
  }
  bool IsGranted(CallId call) const { return events_.Has(call) && events_.grant(call).ok(); }

  absl::Status Release(SessionId session, BlockId block) {
    return broker_->Release(session, {block});
  }

  // The same for two leases of the same memory, whose ids differ.
  const void* MemoryOf(SessionId session, BlockId block) {
    const absl::StatusOr<FetchedBlock> fetched = broker_->Fetch(session, block);
    EXPECT_THAT(fetched, IsOk());
    return fetched.ok() ? fetched->exported.get() : nullptr;
  }

  CallId NewCall() { return CallId(++last_call_); }

  // Of the pool of memory type 0, and of the direct row.
  PoolStats Pool() const { return broker_->Stats().pools.front(); }
  PoolStats Direct() const { return broker_->Stats().pools.back(); }
  HeapStats Heap() const { return broker_->Stats().heaps.front(); }

  // What the statistics promise, and what no run may break.
  void CheckSums() const {
    const DeviceStats stats = broker_->Stats();
    Bytes total;
    for (const PoolStats& pool : stats.pools) {
      total += pool.total();
      EXPECT_EQ(pool.requests, pool.hits + pool.total_misses());
    }
    Bytes in_use;
    for (const HeapStats& heap : stats.heaps) {
      EXPECT_LE(heap.in_use, heap.budget);
      in_use += heap.in_use;
    }
    EXPECT_EQ(total, in_use);
    EXPECT_LE(device_->counts().live_bytes, in_use);
    EXPECT_LE(device_->counts().live, stats.allocations);
    EXPECT_LE(stats.allocations, stats.max_allocations);
  }

  FakeClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  RecordedEvents events_;
  RecordedTurns turns_;
  std::unique_ptr<SimulatedDevice> device_;
  std::unique_ptr<DeviceBroker> broker_;
  uint64_t last_session_ = 0;
  uint64_t last_call_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CORE_CORE_FIXTURE_H_

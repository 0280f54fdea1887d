// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Random requests that wait, on two heaps and several pools, under a driver whose
// offer changes: sums always hold, and nobody waits for what is not on its way.
#include <map>
#include <random>
#include <set>
#include <variant>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

DeviceInfo TwoHeaps() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps = {{GiB(1), true}, {GiB(1), false}};
  info.memory_types.assign(3, info.memory_types[0]);
  info.memory_types[0].host_visible = false;
  info.memory_types[1].device_local = false;
  info.memory_types[1].heap = info.memory_types[2].heap = 1;
  info.memory_types[2].device_local = info.memory_types[2].host_cached = false;
  return info;
}

class WaitingWalkTest : public CoreTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  void StartWalk() {
    LedgerOptions options;
    options.admission.heaps = {HeapLimit{MiB(96), 1000}, HeapLimit{MiB(48), 900}};
    options.admission.count_limits = Allocations(24);
    options.admission.pools = PoolsFor("device_local=8mib;32mib;4,*=4mib,host_visible", TwoHeaps());
    Start(options, TwoHeaps());
    for (uint32_t i = 0; i < 5; ++i) {
      held_[NewSession(TenantId(1000 + i % 3))];
    }
  }
  SessionId AnySession() {
    auto it = held_.begin();
    std::advance(it, Draw(static_cast<uint32_t>(held_.size())));
    return it->first;
  }

  void DoAllocate() {
    const SessionId session = AnySession();
    AllocateRequest request;
    request.blocks.resize(1 + Draw(3));
    for (BlockRequest& block : request.blocks) {
      block = Ask(KiB(1 + Draw(Draw(3) == 0 ? 40000 : 6000)));
      block.memory = static_cast<MemoryKind>(Draw(3));
      block.zeroed = Draw(8) == 0;
    }
    request.priority = static_cast<Priority>(Draw(3));
    if (Draw(2) == 0) request.wait_until = clock_.Now() + absl::Seconds(1 + Draw(20));
    if (Draw(4) == 0) request.request_id = RequestId(1 + Draw(1000000));
    const CallId call = NewCall();
    const auto outcome = broker_->Allocate(session, call, request);
    if (!outcome.ok()) {
      EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kResourceExhausted, ""));
    } else if (const auto* grant = std::get_if<Grant>(&*outcome)) {
      Hold(session, *grant);
    } else {
      waiting_.emplace(call, Call{session, request.wait_until.value_or(absl::InfinitePast()),
                                  request.request_id});
      ++deferred_;
    }
  }
  void Hold(SessionId session, const Grant& grant) {
    for (const GrantedBlock& block : grant.blocks) held_[session].insert(block.id);
  }
  void Collect() {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (!events_.Has(it->first)) {
        ++it;
        continue;
      }
      const auto& grant = events_.grant(it->first);
      if (grant.ok()) Hold(it->second.session, *grant);
      it = waiting_.erase(it);
    }
  }
  void DoRelease() {
    auto& [session, blocks] = *held_.find(AnySession());
    if (blocks.empty()) return;
    EXPECT_THAT(Release(session, *blocks.begin()), IsOk());
    blocks.erase(blocks.begin());
  }
  void DoEndCall() {
    if (waiting_.empty()) return;
    const auto& [id, call] = *waiting_.begin();
    if (call.request != RequestId()) {
      broker_->Undo(call.session, call.request).IgnoreError();
    } else {
      broker_->Cancel(call.session, id);
    }
  }
  void DriverSays() { device_->ReportHeaps({{MiB(Draw(120)), MiB(1)}, {MiB(Draw(80)), MiB(1)}}); }
  void Step() {
    const uint32_t what = Draw(100);
    if (what < 30) return DoAllocate();
    if (what < 50) return DoRelease();
    if (what < 53) return DoEndCall();
    if (what < 56) return DriverSays();
    if (what < 58) {
      const std::vector<IdleReport> reports = {{0, MiB(Draw(16))}, {1, MiB(Draw(16))}};
      EXPECT_THAT(broker_->ReportIdle(AnySession(), reports), IsOk());
    } else if (what < 59) {
      EXPECT_THAT(broker_->Trim({std::nullopt, MiB(Draw(100)), false}), IsOk());
    } else if (what < 61) {
      device_->FailAllocations(absl::ResourceExhaustedError("driver"), 1 + Draw(3));
    } else if (what < 66) {
      AdvanceAndTick(absl::Milliseconds(Draw(3000)));
    } else if (what < 84) {
      executor_.RunAllocation();
    } else {
      executor_.RunFree();
    }
  }
  // With nothing on its way, only what may wait for others still does.
  void CheckNobodyIsForgotten() {
    executor_.RunAll();
    Collect();
    const absl::Time soon = clock_.Now() + absl::Milliseconds(500);
    for (const auto& [id, call] : waiting_) {
      if (call.until <= soon) late_.insert(id);
    }
    AdvanceAndTick(absl::Milliseconds(500));
    executor_.RunAll();
    Collect();
    for (CallId id : late_) {
      EXPECT_FALSE(waiting_.contains(id)) << "call " << id << " waits for nothing";
    }
    late_.clear();
    uint64_t queued = 0;
    for (const HeapStats& heap : broker_->Stats().heaps) queued += heap.waiting_requests;
    EXPECT_EQ(queued, waiting_.size());
  }

  struct Call {
    SessionId session;
    absl::Time until;
    RequestId request;
  };
  std::mt19937 random_{GetParam()};
  std::map<SessionId, std::set<BlockId>> held_;
  std::map<CallId, Call> waiting_;
  std::set<CallId> late_;
  size_t deferred_ = 0;
};

TEST_P(WaitingWalkTest, SumsHoldAndNobodyWaitsForNothing) {
  StartWalk();
  device_->PadSizes(KiB(4), Bytes(GetParam() % 2 == 0 ? 0 : 64));
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    Step();
    Collect();
    CheckSums();
    if (i % 100 == 99) CheckNobodyIsForgotten();
  }
  EXPECT_GT(broker_->Stats().requests.queued, 20u);
  AdvanceAndTick(absl::Minutes(1));
  executor_.RunAll();
  Collect();
  EXPECT_TRUE(waiting_.empty());
  for (const auto& [session, blocks] : held_) broker_->EndSession(session);
  broker_->EvictEverything();
  executor_.RunAll();
  EXPECT_EQ(device_->counts().live, 0u);
  for (const HeapStats& heap : broker_->Stats().heaps) EXPECT_EQ(heap.in_use, Bytes());
  EXPECT_EQ(events_.count(), deferred_);
  EXPECT_EQ(events_.distinct(), deferred_);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WaitingWalkTest, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace heapbroker

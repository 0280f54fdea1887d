// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Why a request is refused: by which limit, and with which figures.
#include <string>
#include <vector>

#include "daemon/core/refusal.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

// Device memory of 64 MiB and host memory of 32 MiB.
DeviceInfo TwoHeaps() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps = {{MiB(64), true}, {MiB(32), false}};
  MemoryTypeInfo device, host;
  device.device_local = true;
  host.heap = 1;
  host.host_visible = host.host_coherent = true;
  device.exportable.opaque_fd = host.exportable.opaque_fd = true;
  info.memory_types = {device, host};
  return info;
}

class RefusalsTest : public CoreTest {
 protected:
  void StartDriven(Bytes budget, uint32_t per_mille = 1000) {
    LedgerOptions options;
    options.admission.heaps = {HeapLimit{budget, per_mille}};
    Start(options);
  }
  // The driver's figures are read after a device call.
  void DriverSays(Bytes budget, Bytes usage, SessionId session) {
    device_->ReportHeaps({{budget, usage}});
    clock_.Advance(absl::Seconds(1));
    const auto block = Allocate(session, KiB(64));
    ASSERT_THAT(block, IsOk());
  }
  static Refusal Of(const absl::Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    const std::optional<Refusal> refusal = RefusalOf(status);
    EXPECT_TRUE(refusal.has_value()) << status;
    return refusal.value_or(Refusal());
  }
  Refusal RefusedFor(SessionId session, std::vector<Bytes> sizes) {
    std::vector<BlockRequest> requests;
    for (Bytes size : sizes) requests.push_back(Ask(size));
    return Of(Allocate(session, requests).status());
  }
};

TEST_F(RefusalsTest, SayWhatIsHeldFreeAndTheLargestThatWouldFit) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(alice, MiB(56)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(8)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const Refusal refusal = RefusedFor(bob, {MiB(48)});
  EXPECT_EQ(refusal.kind, RefusalKind::kLimitReached);
  EXPECT_EQ(refusal.limit, LimitKind::kHeapBudget);
  EXPECT_EQ(refusal.heap, 0u);
  EXPECT_EQ(refusal.value, MiB(100).count());
  EXPECT_EQ(refusal.in_use, MiB(56).count());
  EXPECT_EQ(refusal.requested, MiB(48).count());
  EXPECT_EQ(refusal.free, MiB(44).count()) << "idle memory counts as free";
  EXPECT_EQ(refusal.largest_now, MiB(44).count());
  EXPECT_EQ(Pool().idle, MiB(8)) << "nothing was evicted for a request that is refused";
}

TEST_F(RefusalsTest, TheLargestThatWouldFitIsBoundedByTheLargestAllocation) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.max_allocation_size = MiB(16);
  Start(MiB(100), info);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  for (int i = 0; i < 4; ++i) ASSERT_THAT(Allocate(alice, MiB(16)), IsOk());
  const Refusal refusal = RefusedFor(bob, std::vector<Bytes>(3, MiB(16)));
  EXPECT_EQ(refusal.free, MiB(36).count());
  EXPECT_EQ(refusal.largest_now, MiB(16).count());
  EXPECT_EQ(refusal.requested, MiB(48).count());
}

TEST_F(RefusalsTest, WhatTheyCallTheLargestIsGranted) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(alice, MiB(57)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, KiB(4100)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const Refusal refusal = RefusedFor(bob, {MiB(90)});
  EXPECT_THAT(Allocate(bob, Bytes(refusal.largest_now)), IsOk());
  CheckSums();
}

TEST_F(RefusalsTest, NeverFitsIsJudgedByTheBudgetWhateverIsHeld) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Allocate(alice, MiB(56)), IsOk());
  const Refusal refusal = RefusedFor(alice, {MiB(101)});
  EXPECT_EQ(refusal.kind, RefusalKind::kNeverFits);
  EXPECT_EQ(refusal.value, MiB(100).count());
  EXPECT_EQ(refusal.requested, MiB(101).count());
  EXPECT_EQ(RefusedFor(alice, {MiB(100)}).kind, RefusalKind::kLimitReached);
  EXPECT_EQ(RefusedFor(alice, {MiB(50), MiB(51)}).kind, RefusalKind::kNeverFits);
  EXPECT_EQ(RefusedFor(alice, {MiB(50), MiB(50)}).kind, RefusalKind::kLimitReached);
}

TEST_F(RefusalsTest, NeverFitsIsJudgedByAllHeapsThatWouldDo) {
  LedgerOptions options;
  options.admission.heaps = {HeapLimit{MiB(64)}, HeapLimit{MiB(32)}};
  Start(options, TwoHeaps());
  const SessionId alice = NewSession(kAlice);
  const auto ask = [&](std::vector<std::pair<Bytes, MemoryWish>> blocks) {
    std::vector<BlockRequest> requests;
    for (auto& [size, memory] : blocks) {
      requests.push_back(Ask(size));
      requests.back().memory = memory;
    }
    return Allocate(alice, requests).status();
  };
  const MemoryWish any = MemoryTypeWish();
  EXPECT_THAT(ask({{MiB(33), MemoryKind::kHostVisible}}),
              StatusIs(StatusCode::kResourceExhausted, "heap 1: 33.0 MiB can never fit"));
  EXPECT_THAT(ask({{MiB(65), any}}), StatusIs(StatusCode::kResourceExhausted, "can never fit"));
  EXPECT_THAT(ask({{MiB(64), any}, {MiB(33), any}}),
              StatusIs(StatusCode::kResourceExhausted, "can never fit"));
  EXPECT_THAT(ask({{MiB(64), any}, {MiB(32), any}}), IsOk());
  CheckSums();
}

TEST_F(RefusalsTest, ABlockThatItsAlignmentMakesLargerThanAnyNeverFits) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.max_allocation_size = MiB(16) - Bytes(1);
  Start(MiB(100), info);
  const SessionId alice = NewSession(kAlice);
  BlockRequest request = Ask(MiB(16) - Bytes(1));
  request.alignment = KiB(4);
  const Refusal refusal = Of(Allocate(alice, {request}).status());
  EXPECT_EQ(refusal.kind, RefusalKind::kNeverFits);
  EXPECT_EQ(refusal.limit, LimitKind::kMaxAllocationSize);
  EXPECT_EQ(refusal.value, (MiB(16) - Bytes(1)).count());
  EXPECT_EQ(refusal.requested, MiB(16).count());
  request.alignment = Bytes();
  EXPECT_THAT(Allocate(alice, {request}), IsOk());
}

TEST_F(RefusalsTest, NameTheLowestOfTheCounts) {
  const std::vector<std::pair<LimitKind, std::string>> names = {
      {LimitKind::kMaxAllocationCount, "8 of 8 allocations of the device"},
      {LimitKind::kDescriptors, "8 of 8 blocks that the daemon has descriptors for"},
      {LimitKind::kMemoryMaps, "8 of 8 blocks that the daemon has mappings for"}};
  for (const auto& [kind, text] : names) {
    LedgerOptions options;
    for (LimitKind each :
         {LimitKind::kMaxAllocationCount, LimitKind::kDescriptors, LimitKind::kMemoryMaps}) {
      options.admission.count_limits.push_back({each, each == kind ? 8u : 100u});
    }
    Start(MiB(100), SimulatedDeviceInfo(), options);
    const SessionId alice = NewSession(kAlice);
    for (int i = 0; i < 8; ++i) ASSERT_THAT(Allocate(alice, KiB(64)), IsOk());
    const auto refused = Allocate(alice, {Ask(KiB(64)), Ask(KiB(64))});
    EXPECT_THAT(refused, StatusIs(StatusCode::kResourceExhausted, text));
    const Refusal refusal = Of(refused.status());
    EXPECT_EQ(refusal.limit, kind);
    EXPECT_EQ(refusal.kind, RefusalKind::kLimitReached);
    EXPECT_FALSE(refusal.heap.has_value());
    EXPECT_EQ(refusal.value, 8u);
    EXPECT_EQ(refusal.in_use, 8u);
    EXPECT_EQ(refusal.requested, 2u);
    EXPECT_EQ(refusal.free, 0u);
    EXPECT_EQ(refusal.largest_now, 0u) << "a count, as the limit is";
    const Refusal bytes = RefusedFor(alice, {MiB(100)});
    EXPECT_EQ(bytes.limit, LimitKind::kHeapBudget);
    EXPECT_EQ(bytes.largest_now, 0u) << "without an allocation nothing would fit";
    const Refusal never = RefusedFor(alice, std::vector<Bytes>(9, KiB(64)));
    EXPECT_EQ(never.kind, RefusalKind::kNeverFits);
    EXPECT_EQ(never.limit, kind);
    EXPECT_EQ(broker_->Stats().count_limits.size(), 3u);
    EXPECT_EQ(broker_->Stats().max_allocations, 8u);
  }
}

TEST_F(RefusalsTest, IdleBlocksGoForTheirAllocations) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(4);
  Start(MiB(100), SimulatedDeviceInfo(), options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  std::vector<BlockId> blocks;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
    blocks.push_back(block.id);
  }
  blocks.pop_back();
  ASSERT_THAT(broker_->Release(alice, blocks), IsOk());
  const Refusal refusal = RefusedFor(bob, std::vector<Bytes>(4, MiB(1)));
  EXPECT_EQ(refusal.free, 3u);
  EXPECT_EQ(refusal.largest_now, 3u);
  EXPECT_EQ(refusal.in_use, 1u);
  EXPECT_THAT(Allocate(bob, {Ask(MiB(1)), Ask(MiB(1)), Ask(MiB(1))}), IsOk());
  EXPECT_LE(device_->counts().peak_live, 4u);
  CheckSums();
}

TEST_F(RefusalsTest, TheDriversBudgetLowersWhatIsAvailableAndEvicts) {
  StartDriven(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(40)));
  ASSERT_THAT(Allocate(alice, MiB(20)), IsOk());
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  DriverSays(MiB(50), MiB(60), alice);
  EXPECT_EQ(Pool().idle, Bytes()) << "idle memory goes where the driver has less than is in use";
  EXPECT_EQ(Heap().budget, MiB(100));
  EXPECT_EQ(Heap().available, MiB(30) - KiB(64));
  EXPECT_EQ(Heap().driver->budget, MiB(50));
  EXPECT_EQ(Heap().others_in_use, GiB(1) - MiB(50));
  const Refusal refusal = RefusedFor(alice, {MiB(40)});
  EXPECT_EQ(refusal.kind, RefusalKind::kLimitReached);
  EXPECT_EQ(refusal.value, MiB(50).count());
  EXPECT_EQ(refusal.in_use, (MiB(20) + KiB(64)).count());
}

TEST_F(RefusalsTest, TheDriversBudgetNeverMakesARequestOneThatNeverFits) {
  StartDriven(MiB(100));
  const SessionId alice = NewSession(kAlice);
  DriverSays(MiB(1), Bytes(1), alice);
  EXPECT_EQ(RefusedFor(alice, {MiB(100)}).kind, RefusalKind::kLimitReached);
  EXPECT_EQ(RefusedFor(alice, {MiB(101)}).kind, RefusalKind::kNeverFits);
}

TEST_F(RefusalsTest, ABudgetThatAnAdministratorSetIsNotLoweredByTheDriver) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  DriverSays(MiB(1), Bytes(1), alice);
  EXPECT_THAT(Allocate(alice, MiB(90)), IsOk());
}

TEST_F(RefusalsTest, MoreThanTheDriverOfferedIsHadAgainOnceItOffersMore) {
  StartDriven(MiB(100));
  const SessionId alice = NewSession(kAlice);
  DriverSays(MiB(10), Bytes(1), alice);
  device_->ReportHeaps({{MiB(100), Bytes(1)}});
  clock_.Advance(absl::Seconds(1));
  // Nothing else makes the device work: the refusal itself must have it looked at.
  EXPECT_EQ(RefusedFor(alice, {MiB(50)}).value, MiB(10).count());
  executor_.RunAll();
  EXPECT_THAT(Allocate(alice, MiB(50)), IsOk());
}

TEST_F(RefusalsTest, WhoWaitsForTheDriversBudgetIsServedWhenThereIsMore) {
  StartDriven(MiB(100));
  const SessionId alice = NewSession(kAlice);
  DriverSays(MiB(10), Bytes(1), alice);
  const CallId call = StartWaiting(alice, MiB(50));
  executor_.RunAll();
  EXPECT_FALSE(events_.Has(call));
  device_->ReportHeaps({{MiB(100), Bytes(1)}});
  for (int i = 0; i < 3 && !events_.Has(call); ++i) {
    const absl::Time due = alarm_.TakeTime();
    ASSERT_LE(due, clock_.Now() + absl::Seconds(1)) << "is looked at again within a second";
    AdvanceAndTick(std::max(due - clock_.Now(), absl::ZeroDuration()));
    executor_.RunAll();
  }
  EXPECT_TRUE(IsGranted(call));
}

TEST_F(RefusalsTest, WhatTheDriverSaysIsReadAtMostOnceASecond) {
  StartDriven(MiB(100));
  const SessionId alice = NewSession(kAlice);
  DriverSays(MiB(50), Bytes(1), alice);
  device_->ReportHeaps({{MiB(40), Bytes(1)}});
  clock_.Advance(absl::Milliseconds(999));
  ASSERT_THAT(Allocate(alice, KiB(64)), IsOk());
  EXPECT_EQ(Heap().driver->budget, MiB(50));
  clock_.Advance(absl::Milliseconds(1));
  ASSERT_THAT(Allocate(alice, KiB(64)), IsOk());
  EXPECT_EQ(Heap().driver->budget, MiB(40));
}

TEST_F(RefusalsTest, NonsenseOfTheDriverIsPutRightAndToldOnce) {
  StartDriven(MiB(100));
  const SessionId alice = NewSession(kAlice);
  DriverSays(GiB(9), GiB(8), alice);
  EXPECT_EQ(Heap().driver->budget, GiB(1));
  EXPECT_EQ(Heap().driver->usage, GiB(1));
  DriverSays(Bytes(), Bytes(), alice);
  EXPECT_FALSE(Heap().driver.has_value());
  EXPECT_THAT(Allocate(alice, MiB(90)), IsOk()) << "no answer is no limit";
  EXPECT_EQ(turns_.warnings().size(), 1u);
}

TEST_F(RefusalsTest, AFractionOfWhatTheDriverOffersIsKept) {
  StartDriven(MiB(100), 900);
  const SessionId alice = NewSession(kAlice);
  DriverSays(MiB(50), Bytes(1), alice);
  EXPECT_EQ(Heap().available, MiB(45) - KiB(64));
}

TEST_F(RefusalsTest, TheDriversOwnRefusalIsToldAsSuch) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 2);
  const Refusal refusal = RefusedFor(alice, {MiB(100)});
  EXPECT_EQ(refusal.limit, LimitKind::kDriver);
  EXPECT_EQ(refusal.kind, RefusalKind::kLimitReached);
  EXPECT_EQ(refusal.requested, MiB(100).count());
  EXPECT_EQ(refusal.value, MiB(512).count());
  EXPECT_EQ(refusal.free, MiB(512).count());
  EXPECT_EQ(Heap().smallest_driver_refusal, MiB(100));
  EXPECT_EQ(broker_->Stats().requests.failed, 1u);
  ASSERT_EQ(turns_.warnings().size(), 1u);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Nobody is refused what would fit: cases that random traces have found.
#include <optional>
#include <vector>

#include "daemon/core/device_broker.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using JustifiedRefusalsTest = CoreTest;

// Device memory on the first heap, memory for the host on the second.
DeviceInfo TwoHeaps() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps.push_back({GiB(1), false});
  info.memory_types.push_back(info.memory_types.front());
  info.memory_types[0].host_visible = info.memory_types[0].host_cached = false;
  info.memory_types[1].heap = 1;
  info.memory_types[1].device_local = false;
  return info;
}

BlockRequest AskOn(uint32_t memory_type, Bytes size) {
  BlockRequest request;
  request.size = size;
  request.memory = MemoryTypeIndex{memory_type};
  return request;
}

TEST_F(JustifiedRefusalsTest, ADeadlineThatHasPassedIsNone) {
  Start(MiB(100), TwoHeaps());
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const Grant held, Allocate(bob, {AskOn(1, MiB(60)), AskOn(0, MiB(60))}));
  AllocateRequest waits = AllocateOf({AskOn(1, MiB(50)), AskOn(0, MiB(50))});
  waits.wait_until = clock_.Now() + absl::Seconds(10);
  ASSERT_THAT(broker_->Allocate(alice, NewCall(), waits), IsOk());
  // What the first in the queue lacks now is on the other heap.
  ASSERT_THAT(Release(bob, held.blocks[0].id), IsOk());
  ASSERT_EQ(broker_->Stats().heaps[1].waiting_requests, 1u);
  AllocateRequest late = AllocateOf({AskOn(1, MiB(10))});
  late.wait_until = clock_.Now() - absl::Seconds(1);
  EXPECT_THAT(broker_->Allocate(bob, NewCall(), late), IsOk());
}

TEST_F(JustifiedRefusalsTest, RoundingTheFirstBlocksUpDoesNotCostTheLastItsPlace) {
  Start(MiB(16));
  const SessionId alice = NewSession(kAlice);
  // Rounded up it takes half a mebibyte more than it asks for.
  ASSERT_OK_AND_ASSIGN(const Grant grant,
                       Allocate(alice, {Ask(MiB(8) + Bytes(1)), Ask(MiB(8) - Bytes(1))}));
  EXPECT_EQ(grant.blocks.size(), 2u);
  EXPECT_EQ(Heap().in_use, MiB(16));
  CheckSums();
}

// On either heap.
MemoryTypeWish Anywhere() {
  MemoryTypeWish wish;
  wish.host_coherent = true;
  return wish;
}

TEST_F(JustifiedRefusalsTest, ABlockThatCouldLieElsewhereDoesNotTakeTheOnlyPlaceOfAnother) {
  Start(MiB(100), TwoHeaps());
  const SessionId alice = NewSession(kAlice);
  BlockRequest anywhere = Ask(MiB(60));
  anywhere.memory = Anywhere();
  ASSERT_OK_AND_ASSIGN(const Grant grant, Allocate(alice, {anywhere, AskOn(0, MiB(60))}));
  EXPECT_EQ(grant.blocks[0].block_class.memory_type, 1u);
  EXPECT_EQ(grant.blocks[1].block_class.memory_type, 0u);
  EXPECT_EQ(grant.blocks[0].size, MiB(60)) << "in the order of the request";
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, ASegmentThatNoOneHeapCanHoldNeverFits) {
  DeviceInfo info = TwoHeaps();
  info.max_allocation_size = MiB(64);
  Start(MiB(100), info);
  const SessionId alice = NewSession(kAlice);
  OpenSegmentRequest segment{"weights", OpenMode::kCreateOrAttach, MiB(150), Anywhere()};
  segment.wait_until = clock_.Now() + absl::Seconds(10);
  const auto opened = broker_->OpenSegment(alice, NewCall(), segment);
  const std::optional<Refusal> refusal = RefusalOf(opened.status());
  ASSERT_TRUE(refusal.has_value()) << opened.status();
  EXPECT_EQ(refusal->kind, RefusalKind::kNeverFits);
  EXPECT_EQ(refusal->value, MiB(100).count());
  EXPECT_EQ(refusal->requested, MiB(150).count());
}

TEST_F(JustifiedRefusalsTest, WaitsForWhatTheDriverPadsBy) {
  Start(MiB(8) + KiB(64));
  device_->PadSizes(Bytes(1), KiB(64));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock held, Allocate(alice, MiB(4)));
  // What is left is what is asked for, but not what the device needs for it.
  AllocateRequest waits = AllocateOf({Ask(MiB(4))});
  waits.wait_until = clock_.Now() + absl::Seconds(10);
  const CallId call = NewCall();
  ASSERT_THAT(broker_->Allocate(bob, call, waits), IsOk());
  executor_.RunAll();
  EXPECT_FALSE(events_.Has(call));
  ASSERT_THAT(Release(alice, held.id), IsOk());
  executor_.RunAll();
  ASSERT_TRUE(events_.Has(call));
  EXPECT_THAT(events_.grant(call), IsOk());
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, EvictsNoMoreThanThePaddingThatBothSizesOfABlockNeed) {
  Start(MiB(7) + KiB(100));
  device_->PadSizes(KiB(128), Bytes());
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const Grant idle, Allocate(alice, {Ask(MiB(3)), Ask(MiB(4))}));
  ASSERT_THAT(Release(alice, idle.blocks[0].id), IsOk());
  ASSERT_THAT(Release(alice, idle.blocks[1].id), IsOk());
  // What is free at once is enough for 70 KiB and for the 72 KiB that these are rounded
  // to, but not for what the driver makes of either.
  EXPECT_THAT(Allocate(NewSession(kBob), KiB(70)), IsOk());
  EXPECT_EQ(Pool().idle, MiB(4));
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, AskingTheDeviceForLessNeedsNoBudget) {
  LedgerOptions options;
  options.admission.heaps = {HeapLimit{MiB(100), 1000}};
  Start(options);
  const SessionId alice = NewSession(kAlice);
  StartAllocate(alice, KiB(64));
  const CallId call = StartAllocate(alice, MiB(8) + Bytes(1));
  // Less than is in use by now, which the first job's end shows.
  device_->ReportHeaps({{MiB(4), Bytes()}});
  ASSERT_TRUE(executor_.RunAllocation());
  ASSERT_EQ(Heap().available, Bytes());
  // The rounded size only.
  device_->FailAllocations(absl::ResourceExhaustedError("driver"), 1);
  ASSERT_TRUE(executor_.RunAllocation());
  EXPECT_TRUE(IsGranted(call));
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, WhatCannotFitWithItsPaddingDoesNotWait) {
  Start(MiB(8));
  device_->PadSizes(Bytes(1), KiB(64));
  AllocateRequest waits = AllocateOf({Ask(MiB(8))});
  waits.wait_until = clock_.Now() + absl::Seconds(10);
  const CallId call = NewCall();
  ASSERT_THAT(broker_->Allocate(NewSession(kAlice), call, waits), IsOk());
  executor_.RunAll();
  ASSERT_TRUE(events_.Has(call));
  const std::optional<Refusal> refusal = RefusalOf(events_.grant(call).status());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->kind, RefusalKind::kNeverFits);
}

TEST_F(JustifiedRefusalsTest, PaddingDoesNotTakeAPoolOverItsCapacity) {
  LedgerOptions options;
  options.admission.pools = {{"type 0", 0, true, false, {.max_allocation_capacity = MiB(2)}}};
  Start(MiB(8), SimulatedDeviceInfo(), options);
  device_->PadSizes(Bytes(1), KiB(64));
  ASSERT_THAT(Allocate(NewSession(kAlice), MiB(2)), IsOk());
  EXPECT_EQ(Pool().leased, Bytes());
  EXPECT_EQ(Direct().leased, MiB(2) + KiB(64));
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, AnIdleBlockDoesNotTakeAPoolOverTheCapacityThatANewOneTook) {
  LedgerOptions options;
  options.admission.pools = {{"type 0", 0, true, false, {.max_allocation_capacity = MiB(8)}}};
  Start(MiB(100), SimulatedDeviceInfo(), options);
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(4)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  ASSERT_THAT(Allocate(alice, {Ask(MiB(6)), Ask(MiB(4))}), IsOk());
  EXPECT_EQ(Pool().leased, MiB(6));
  EXPECT_EQ(Direct().leased, MiB(4));
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, NamesTheHeapThatIsShortWhereItsIdleBlockWouldServeTwice) {
  Start(MiB(20), TwoHeaps());
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Allocate(NewSession(kBob), {AskOn(0, MiB(4))}), IsOk());
  ASSERT_OK_AND_ASSIGN(const Grant idle, Allocate(alice, {AskOn(0, MiB(8))}));
  ASSERT_THAT(Release(alice, idle.blocks[0].id), IsOk());
  const std::optional<Refusal> refusal =
      RefusalOf(Allocate(alice, {AskOn(0, MiB(9)), AskOn(0, MiB(8)), AskOn(1, Bytes(1))}).status());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->heap, 0u);
  EXPECT_EQ(refusal->requested, MiB(17).count());
  EXPECT_EQ(refusal->free, MiB(16).count());
}

TEST_F(JustifiedRefusalsTest, AllThatADeadSessionHeldServesThoseWhoWait) {
  Start(MiB(16));
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(bob, MiB(10)), IsOk());
  const OpenSegmentRequest filled{"filled", OpenMode::kCreateOrAttach, MiB(6)};
  ASSERT_THAT(broker_->OpenSegment(alice, NewCall(), filled), IsOk());
  executor_.RunAll();
  OpenSegmentRequest wanted{"wanted", OpenMode::kCreateOrAttach, MiB(6)};
  wanted.wait_until = clock_.Now() + absl::Seconds(10);
  ASSERT_THAT(broker_->OpenSegment(alice, NewCall(), wanted), IsOk());
  wanted.wait_until = std::nullopt;
  const CallId next = NewCall();
  ASSERT_THAT(broker_->OpenSegment(other, next, wanted), IsOk());
  broker_->EndSession(alice);
  executor_.RunAll();
  ASSERT_TRUE(events_.Has(next));
  EXPECT_THAT(events_.segment(next), IsOk());
}

TEST_F(JustifiedRefusalsTest, AnUndoneRequestDoesNotTakeALaterOneOfItsIdAway) {
  Start(MiB(16));
  const SessionId alice = NewSession(kAlice);
  AllocateRequest request = AllocateOf({Ask(MiB(1))});
  request.request_id = RequestId(7);
  ASSERT_THAT(broker_->Allocate(alice, NewCall(), request), IsOk());
  ASSERT_THAT(broker_->Undo(alice, RequestId(7)), IsOk());
  const CallId again = NewCall();
  ASSERT_THAT(broker_->Allocate(alice, again, request), IsOk());
  executor_.RunAll();
  ASSERT_TRUE(events_.Has(again));
  ASSERT_OK_AND_ASSIGN(const Grant grant, events_.grant(again));
  ASSERT_OK_AND_ASSIGN(const auto repeated, broker_->Allocate(alice, NewCall(), request));
  ASSERT_TRUE(std::holds_alternative<Grant>(repeated));
  EXPECT_EQ(std::get<Grant>(repeated).blocks[0].id, grant.blocks[0].id);
}

TEST_F(JustifiedRefusalsTest, AKindIsNotAskedForAgainByItsFirstProperty) {
  Start(MiB(16));
  const SessionId alice = NewSession(kAlice);
  AllocateRequest request = AllocateOf({Ask(MiB(1))});
  request.request_id = RequestId(7);
  request.blocks[0].memory = MemoryKind::kHostVisible;
  ASSERT_THAT(broker_->Allocate(alice, NewCall(), request), IsOk());
  executor_.RunAll();
  request.blocks[0].memory = MemoryTypeWish{.host_visible = true};
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), request),
              StatusIs(absl::StatusCode::kInvalidArgument, "request_id"));
}

TEST_F(JustifiedRefusalsTest, WhoNeedsTwoHeapsHasItsTurnOnBoth) {
  Start(MiB(16), TwoHeaps());
  const SessionId hog = NewSession(TenantId(7)), alice = NewSession(kAlice), bob = NewSession(kBob);
  std::vector<BlockId> held;
  for (const uint32_t type : {0, 0, 1, 1}) {
    ASSERT_OK_AND_ASSIGN(const Grant grant, Allocate(hog, {AskOn(type, MiB(8))}));
    held.push_back(grant.blocks[0].id);
  }
  const auto wait = [&](SessionId session, std::vector<BlockRequest> blocks) {
    AllocateRequest request = AllocateOf(std::move(blocks));
    request.wait_until = clock_.Now() + absl::Seconds(60);
    return CoreTest::Start(session, request);
  };
  const CallId both = wait(alice, {AskOn(0, MiB(8)), AskOn(1, MiB(8))});
  const CallId one = wait(bob, {AskOn(1, MiB(8))});
  wait(bob, {AskOn(1, MiB(8))});
  for (const size_t i : {0, 2, 3}) {
    ASSERT_THAT(Release(hog, held[i]), IsOk());
    executor_.RunAll();
  }
  EXPECT_TRUE(IsGranted(both)) << "bob had heap 1 twice";
  EXPECT_TRUE(IsGranted(one));
}

TEST_F(JustifiedRefusalsTest, WhoseTurnItIsHasTheAllocationsKeptWhateverHeapTheyWouldLieOn) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(2);
  Start(MiB(64), TwoHeaps(), options);
  const SessionId hog = NewSession(TenantId(7)), alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const Grant held, Allocate(hog, {AskOn(1, MiB(1)), AskOn(1, MiB(1))}));
  AllocateRequest request = AllocateOf({AskOn(0, MiB(1)), AskOn(0, MiB(1))});
  request.wait_until = clock_.Now() + absl::Seconds(60);
  const CallId call = CoreTest::Start(alice, request);
  ASSERT_THAT(Release(hog, held.blocks[0].id), IsOk());
  executor_.RunAll();
  EXPECT_THAT(Allocate(bob, {AskOn(1, MiB(1))}),
              StatusIs(absl::StatusCode::kResourceExhausted, "2 of 2 allocations"));
  ASSERT_THAT(Release(hog, held.blocks[1].id), IsOk());
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(call));
}

}  // namespace
}  // namespace heapbroker

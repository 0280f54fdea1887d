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

TEST_F(JustifiedRefusalsTest, WhoRunsOutOfTimeGetsWhatIsThereOnAnotherHeap) {
  Start(MiB(100), TwoHeaps());
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const Grant first, Allocate(alice, {AskOn(0, MiB(64))}));
  ASSERT_OK_AND_ASSIGN(const Grant second, Allocate(bob, {AskOn(1, MiB(80))}));
  ASSERT_THAT(Release(alice, first.blocks[0].id), IsOk());
  AllocateRequest request = WaitingFor(MiB(80), absl::Seconds(1));
  request.blocks[0].memory = Anywhere();
  const CallId call = Start(bob, request);
  ASSERT_EQ(executor_.frees(), 1u) << "it is promised what is idle on heap 0";
  ASSERT_THAT(Release(bob, second.blocks[0].id), IsOk());
  AdvanceAndTick(absl::Seconds(1));
  ASSERT_TRUE(IsGranted(call)) << "the device has freed nothing yet";
  EXPECT_EQ(events_.grant(call)->blocks[0].block_class.memory_type, 1u);
  executor_.RunAll();
  EXPECT_EQ(Heap().in_use, Bytes()) << "the promise was given up";
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, ABatchThatFitsInSomeArrangementIsGranted) {
  LedgerOptions options;
  options.admission.heaps = {HeapLimit{MiB(100)}, HeapLimit{MiB(60)}};
  Start(options, TwoHeaps());
  std::vector<BlockRequest> blocks = {Ask(MiB(60)), Ask(MiB(50)), Ask(MiB(50))};
  for (BlockRequest& block : blocks) block.memory = Anywhere();
  ASSERT_OK_AND_ASSIGN(const Grant grant, Allocate(NewSession(kAlice), blocks));
  EXPECT_EQ(grant.blocks[0].block_class.memory_type, 1u);
  EXPECT_EQ(grant.blocks[1].block_class.memory_type, 0u);
  EXPECT_EQ(grant.blocks[2].block_class.memory_type, 0u);
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, ABatchIsArrangedAroundWhatOthersHoldAndIdleBlocksGoForIt) {
  LedgerOptions options;
  options.admission.heaps = {HeapLimit{MiB(120)}, HeapLimit{MiB(70)}};
  Start(options, TwoHeaps());
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(bob, {AskOn(0, MiB(20))}), IsOk());
  ASSERT_OK_AND_ASSIGN(const Grant idle, Allocate(bob, {AskOn(1, MiB(40)), AskOn(0, MiB(80))}));
  ASSERT_THAT(broker_->Release(bob, {idle.blocks[0].id, idle.blocks[1].id}), IsOk());
  std::vector<BlockRequest> blocks = {Ask(MiB(70)), Ask(MiB(50)), Ask(MiB(50))};
  for (BlockRequest& block : blocks) block.memory = Anywhere();
  ASSERT_THAT(Allocate(alice, blocks), IsOk());
  CheckSums();
}

TEST_F(JustifiedRefusalsTest, ABatchThatFitsInNoArrangementNeverFits) {
  const auto never = [&](Bytes first, Bytes second, std::vector<Bytes> sizes) {
    LedgerOptions options;
    options.admission.heaps = {HeapLimit{first}, HeapLimit{second}};
    Start(options, TwoHeaps());
    AllocateRequest request;
    request.wait_until = clock_.Now() + absl::Seconds(10);
    for (const Bytes size : sizes) {
      request.blocks.push_back(Ask(size));
      request.blocks.back().memory = Anywhere();
    }
    const auto outcome = broker_->Allocate(NewSession(kAlice), NewCall(), request);
    const std::optional<Refusal> refusal = RefusalOf(outcome.status());
    EXPECT_TRUE(refusal.has_value()) << outcome.status();
    return refusal.value_or(Refusal());
  };
  const Refusal bound = never(MiB(100), MiB(50), {MiB(60), MiB(60)});
  EXPECT_EQ(bound.kind, RefusalKind::kNeverFits);
  EXPECT_EQ(bound.heap, 0u);
  EXPECT_EQ(bound.value, MiB(100).count());
  EXPECT_EQ(bound.requested, MiB(120).count()) << "neither fits on the other heap";
  // Three pieces of more than a half, on two heaps.
  const Refusal pieces = never(MiB(80), MiB(80), {MiB(50), MiB(50), MiB(50)});
  EXPECT_EQ(pieces.kind, RefusalKind::kNeverFits);
  EXPECT_EQ(pieces.value, MiB(160).count());
  EXPECT_EQ(pieces.requested, MiB(150).count());
  EXPECT_EQ(Sentence(pieces),
            "150.0 MiB can never fit in the daemon's budget of 160.0 MiB, however its blocks lie "
            "on the heaps; ask for smaller blocks, or have the limit raised");
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

TEST_F(JustifiedRefusalsTest, ASizeThatNoBufferCanHaveCostsNobodyHisIdleBlocks) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.max_allocation_size = MiB(64);
  Start(MiB(512), info);
  device_->PadSizes(Bytes(1), Bytes(64));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(8)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const auto refused = Allocate(bob, MiB(64));
  const std::optional<Refusal> refusal = RefusalOf(refused.status());
  ASSERT_TRUE(refusal.has_value()) << refused.status();
  EXPECT_EQ(refusal->kind, RefusalKind::kNeverFits);
  EXPECT_EQ(refusal->limit, LimitKind::kMaxAllocationSize);
  EXPECT_EQ(refusal->value, MiB(64).count());
  EXPECT_EQ(refusal->requested, MiB(64).count());
  EXPECT_EQ(Pool().idle_blocks, 1u);
  EXPECT_EQ(broker_->Stats().requests.never_fit, 1u);
  EXPECT_TRUE(turns_.warnings().empty()) << "the driver refused no memory";
}

TEST_F(JustifiedRefusalsTest, AFailedClearCostsNobodyElseHisIdleBlocks) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  for (const SessionId session : {alice, bob}) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(session, MiB(8)));
    ASSERT_THAT(Release(session, block.id), IsOk());
  }
  device_->FailClears(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_HOST_MEMORY"), 1);
  BlockRequest zeroed = Ask(MiB(8));
  zeroed.zeroed = true;
  EXPECT_THAT(Allocate(bob, {zeroed}), StatusIs(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(Pool().idle_blocks, 1u) << "alice's";
}

TEST_F(JustifiedRefusalsTest, WhatTheDriverRefusedLatelyIsNotEvictedForAgain) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const auto make_idle = [&] {
    const auto block = Allocate(alice, MiB(8));
    ASSERT_THAT(block, IsOk());
    ASSERT_THAT(Release(alice, block->id), IsOk());
  };
  const auto refused_for = [&](Bytes size) {
    make_idle();
    device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 9);
    EXPECT_THAT(Allocate(bob, size), StatusIs(absl::StatusCode::kResourceExhausted, "the driver"));
    device_->FailAllocations(absl::OkStatus(), 0);
  };
  refused_for(MiB(64));
  EXPECT_EQ(Pool().idle_blocks, 0u) << "all that could be done was";
  refused_for(MiB(64));
  EXPECT_EQ(Pool().idle_blocks, 1u) << "it did not help a moment ago";
  refused_for(MiB(80));
  EXPECT_EQ(Pool().idle_blocks, 1u);
  refused_for(MiB(48));
  EXPECT_EQ(Pool().idle_blocks, 0u) << "less may be there";
  clock_.Advance(absl::Seconds(61));
  refused_for(MiB(48));
  EXPECT_EQ(Pool().idle_blocks, 0u) << "others may have given some back";
  ASSERT_THAT(Allocate(bob, MiB(50)), IsOk());
  refused_for(MiB(48));
  EXPECT_EQ(Pool().idle_blocks, 0u) << "the driver has made more since";
}

TEST_F(JustifiedRefusalsTest, ForItsAllocationAnOrphansBlockGoesFirstWhateverItsHeap) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(2);
  Start(MiB(64), TwoHeaps(), options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob),
                  carol = NewSession(TenantId(1003));
  ASSERT_OK_AND_ASSIGN(const Grant first, Allocate(alice, {AskOn(0, MiB(1))}));
  ASSERT_THAT(Release(alice, first.blocks[0].id), IsOk());
  ASSERT_OK_AND_ASSIGN(const Grant second, Allocate(bob, {AskOn(1, MiB(1))}));
  ASSERT_THAT(Release(bob, second.blocks[0].id), IsOk());
  broker_->EndSession(bob);
  ASSERT_THAT(Allocate(carol, {AskOn(1, MiB(2))}), IsOk());
  EXPECT_EQ(broker_->Stats().pools[0].idle_blocks, 1u) << "alice's";
}

TEST_F(JustifiedRefusalsTest, ForItsAllocationTheOldestBlockGoesWhateverItsHeapAndSegmentsLast) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(3);
  Start(MiB(64), TwoHeaps(), options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId call = NewCall();
  ASSERT_THAT(broker_->OpenSegment(
                  alice, call, {"weights", OpenMode::kCreateOrAttach, MiB(1), MemoryTypeIndex{0}}),
              IsOk());
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const SegmentView view, events_.segment(call));
  ASSERT_THAT(broker_->SealSegment(alice, view.id, {}), IsOk());
  ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  ASSERT_OK_AND_ASSIGN(const Grant blocks, Allocate(alice, {AskOn(1, MiB(1)), AskOn(0, MiB(1))}));
  ASSERT_THAT(Release(alice, blocks.blocks[0].id), IsOk());
  ASSERT_THAT(Release(alice, blocks.blocks[1].id), IsOk());
  ASSERT_THAT(Allocate(bob, {AskOn(0, MiB(2))}), IsOk());
  EXPECT_EQ(broker_->Stats().pools[1].idle_blocks, 0u) << "the older one";
  EXPECT_EQ(broker_->Stats().pools[0].idle_blocks, 1u);
  ASSERT_THAT(Allocate(bob, {AskOn(0, MiB(2))}), IsOk());
  EXPECT_EQ(broker_->Stats().pools[0].idle_blocks, 0u);
  EXPECT_EQ(broker_->ListSegments().size(), 1u);
  ASSERT_THAT(Allocate(bob, {AskOn(1, MiB(2))}), IsOk());
  EXPECT_TRUE(broker_->ListSegments().empty());
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

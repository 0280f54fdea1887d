// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The notation's pools, from the text to what becomes of requests.
#include <string>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class PoolsTest : public CoreTest {
 protected:
  void StartWith(absl::string_view pools, Bytes budget = GiB(8), LedgerOptions options = {}) {
    DeviceInfo info = SimulatedDeviceInfo();
    info.heaps[0].size = GiB(8);
    info.max_allocation_size = GiB(2);
    options.admission.pools = PoolsFor(pools, info);
    Start(budget, std::move(info), std::move(options));
  }
  PoolStats At(size_t index) const { return broker_->Stats().pools.at(index); }
  static uint64_t Misses(const PoolStats& pool, MissReason reason) {
    return pool.misses[static_cast<size_t>(reason)];
  }
  static uint64_t NotKept(const PoolStats& pool, NotKeptReason reason) {
    return pool.not_kept[static_cast<size_t>(reason)];
  }
  std::vector<BlockId> AllocateAll(SessionId session, int count, Bytes size) {
    std::vector<BlockId> ids;
    for (int i = 0; i < count; ++i) {
      const auto block = Allocate(session, size);
      EXPECT_THAT(block, IsOk());
      if (block.ok()) ids.push_back(block->id);
    }
    return ids;
  }
};

TEST_F(PoolsTest, TheSmallPoolFirstKeepsTenSmallBlocksAndOneLarge) {
  StartWith("device_local=100mib;*;10,device_local=1gib;*;1");
  const SessionId alice = NewSession(kAlice);
  const auto small = AllocateAll(alice, 12, MiB(1)), large = AllocateAll(alice, 2, MiB(512));
  ASSERT_THAT(broker_->Release(alice, small), IsOk());
  ASSERT_THAT(broker_->Release(alice, large), IsOk());
  EXPECT_EQ(At(0).idle_blocks, 10u);
  EXPECT_EQ(At(0).largest_idle_block, MiB(1));
  EXPECT_EQ(At(1).idle_blocks, 1u);
  EXPECT_EQ(At(1).idle, MiB(512));
  EXPECT_EQ(NotKept(At(0), NotKeptReason::kCount), 2u);
  EXPECT_EQ(NotKept(At(1), NotKeptReason::kCount), 1u);
  CheckSums();
}

TEST_F(PoolsTest, TheLargePoolFirstTakesEverythingAndKeepsOneBlock) {
  StartWith("device_local=1gib;*;1,device_local=100mib;*;10");
  const SessionId alice = NewSession(kAlice);
  const auto small = AllocateAll(alice, 12, MiB(1)), large = AllocateAll(alice, 2, MiB(512));
  ASSERT_THAT(broker_->Release(alice, large), IsOk());
  ASSERT_THAT(broker_->Release(alice, small), IsOk());
  EXPECT_EQ(At(0).idle_blocks, 1u);
  EXPECT_EQ(At(0).idle, MiB(1)) << "the newest";
  EXPECT_EQ(At(1).requests, 0u);
}

TEST_F(PoolsTest, ARequestOverTheSizeLimitOfAllPoolsIsServedDirectlyAndNotKept) {
  StartWith("device_local=100mib;*;10");
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(100) + Bytes(1)));
  EXPECT_EQ(block.allocation_size, MiB(100) + Bytes(1)) << "is not rounded";
  EXPECT_EQ(Misses(At(0), MissReason::kOverSizeLimit), 1u);
  EXPECT_EQ(Direct().leased, MiB(100) + Bytes(1));
  EXPECT_EQ(Heap().in_use, Direct().leased) << "the budget counts it";
  ASSERT_THAT(Release(alice, block.id), IsOk());
  EXPECT_EQ(Direct().being_freed, MiB(100) + Bytes(1));
  executor_.RunAll();
  EXPECT_EQ(device_->counts().live, 0u);
  EXPECT_EQ(NotKept(Direct(), NotKeptReason::kNeverCached), 1u);
  ASSERT_THAT(Allocate(alice, MiB(100)), IsOk());
  EXPECT_EQ(At(0).leased, MiB(104)) << "the size asked for counts, not the rounded one";
  CheckSums();
}

TEST_F(PoolsTest, ARequestOverTheCapacityOfAllPoolsIsServedDirectlyAndNotKept) {
  StartWith("device_local=*;64mib;10");
  const SessionId alice = NewSession(kAlice);
  const auto blocks = AllocateAll(alice, 3, MiB(32));
  EXPECT_EQ(At(0).leased, MiB(64));
  EXPECT_EQ(Direct().leased, MiB(32));
  EXPECT_EQ(Misses(At(0), MissReason::kAtCapacity), 1u);
  EXPECT_EQ(Misses(Direct(), MissReason::kNeverCached), 1u);
  ASSERT_THAT(broker_->Release(alice, blocks), IsOk());
  EXPECT_EQ(At(0).idle, MiB(64));
  EXPECT_EQ(Direct().being_freed, MiB(32));
  CheckSums();
}

TEST_F(PoolsTest, APoolEvictsItsOwnIdleBlocksForCapacityTheOldestOfAnyTenantFirst) {
  StartWith("device_local=*;96mib;10");
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const BlockId first = AllocateAll(bob, 1, MiB(32))[0], second = AllocateAll(alice, 1, MiB(32))[0],
                third = AllocateAll(bob, 1, MiB(32))[0];
  const void* const kept = MemoryOf(bob, third);
  ASSERT_THAT(Release(alice, second), IsOk());
  ASSERT_THAT(Release(bob, first), IsOk());
  ASSERT_THAT(Release(bob, third), IsOk());
  ASSERT_THAT(Allocate(alice, MiB(40)), IsOk());
  EXPECT_EQ(NotKept(At(0), NotKeptReason::kCapacity), 2u) << "alice's, then bob's older one";
  EXPECT_EQ(At(0).leased + At(0).idle, MiB(72));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock again, Allocate(bob, MiB(32)));
  EXPECT_EQ(MemoryOf(bob, again.id), kept);
  CheckSums();
}

TEST_F(PoolsTest, ReservedBytesCountAgainstTheCapacity) {
  StartWith("device_local=*;64mib;10");
  const SessionId alice = NewSession(kAlice);
  StartAllocate(alice, MiB(48));
  StartAllocate(alice, MiB(32));
  EXPECT_EQ(At(0).reserved, MiB(48));
  EXPECT_EQ(Direct().reserved, MiB(32));
}

TEST_F(PoolsTest, TakesTheExactSizeWhereTheRoundedOneDoesNotFitTheCapacity) {
  StartWith("device_local=*;33mib;10");
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(33)));
  EXPECT_EQ(block.allocation_size, MiB(33));
  EXPECT_EQ(At(0).leased, MiB(33));
}

TEST_F(PoolsTest, TakesTheExactSizeWhereTheRoundedOneIsOverTheLargestAllocation) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.max_allocation_size = MiB(33);
  Start(MiB(512), info);
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(33)));
  EXPECT_EQ(block.allocation_size, MiB(33));
}

TEST_F(PoolsTest, ExactMatchingNeitherRoundsNorServesAnotherSize) {
  LedgerOptions options;
  options.admission.matching.matching = Matching::kExact;
  StartWith("device_local", GiB(1), options);
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, KiB(1001)));
  EXPECT_EQ(block.allocation_size, KiB(1001));
  ASSERT_THAT(Release(alice, block.id), IsOk());
  ASSERT_THAT(Allocate(alice, KiB(1000)), IsOk());
  EXPECT_EQ(At(0).hits, 0u);
  ASSERT_THAT(Allocate(alice, KiB(1001)), IsOk());
  EXPECT_EQ(At(0).hits, 1u);
}

TEST_F(PoolsTest, ABlockThatTheDriverPaddedServesTheSameRequestAgain) {
  for (const Matching matching : {Matching::kBestFit, Matching::kExact}) {
    LedgerOptions options;
    options.admission.matching.matching = matching;
    StartWith("device_local", GiB(1), options);
    device_->PadSizes(KiB(64), Bytes(64));
    const SessionId alice = NewSession(kAlice);
    for (const Bytes size : {Bytes(1), KiB(100), MiB(5)}) {
      const uint64_t hits = At(0).hits;
      ASSERT_THAT(Release(alice, AllocateAll(alice, 1, size)[0]), IsOk());
      ASSERT_THAT(Allocate(alice, size), IsOk());
      EXPECT_EQ(At(0).hits, hits + 1) << size;
    }
    CheckSums();
  }
}

TEST_F(PoolsTest, PaddingIsNoRoomForALargerBuffer) {
  StartWith("device_local");
  device_->PadSizes(KiB(64), Bytes(64));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, KiB(64)));
  ASSERT_EQ(block.allocation_size, KiB(64) + Bytes(64));
  ASSERT_THAT(Release(alice, block.id), IsOk());
  // A buffer of that size needs twice as much.
  ASSERT_OK_AND_ASSIGN(const GrantedBlock larger, Allocate(alice, KiB(64) + Bytes(1)));
  EXPECT_GT(larger.allocation_size, KiB(128));
  EXPECT_EQ(Misses(At(0), MissReason::kOnlyTooSmall), 1u);
}

TEST_F(PoolsTest, AnOrderThatWaitedForPaddingHasItsBlockMadeForWhatItAskedFor) {
  StartWith("device_local", MiB(8) + Bytes(100));
  device_->PadSizes(KiB(64), Bytes(64));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const BlockId held = AllocateAll(alice, 1, MiB(4))[0];
  const CallId call = StartWaiting(bob, MiB(4));
  executor_.RunAll();
  ASSERT_THAT(Release(alice, held), IsOk());
  executor_.RunAll();
  ASSERT_TRUE(IsGranted(call));
  EXPECT_EQ(events_.grant(call)->blocks[0].allocation_size, MiB(4) + Bytes(64))
      << "not padded twice";
}

TEST_F(PoolsTest, ABlockOfAnotherKindIsNoHit) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.device_addresses = true;
  info.memory_types[0].exportable = {.opaque_fd = true, .dma_buf = true};
  Start(MiB(512), info);
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock plain, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, plain.id), IsOk());
  BlockRequest address = Ask(MiB(1)), dedicated = Ask(MiB(1)), dma_buf = Ask(MiB(1));
  address.device_address = true;
  dedicated.dedicated = true;
  dma_buf.handle_type = HandleType::kDmaBuf;
  for (const BlockRequest& request : {address, dedicated, dma_buf}) {
    ASSERT_THAT(Allocate(alice, {request}), IsOk());
  }
  EXPECT_EQ(Pool().hits, 0u);
  ASSERT_THAT(Allocate(alice, MiB(1)), IsOk());
  EXPECT_EQ(Pool().hits, 1u);
}

TEST_F(PoolsTest, OnlyTransientRequestsReachATransientPool) {
  StartWith("device_local|transient=*;*;4,device_local");
  const SessionId alice = NewSession(kAlice);
  BlockRequest transient = Ask(MiB(1));
  transient.transient = true;
  ASSERT_THAT(Allocate(alice, {Ask(MiB(1)), transient}), IsOk());
  EXPECT_EQ(At(0).leased_blocks, 1u);
  EXPECT_EQ(At(1).leased_blocks, 1u);
}

TEST_F(PoolsTest, ABlockGoesBackToThePoolThatItCameFrom) {
  StartWith("device_local=*;32mib;4,device_local=*;*;4");
  const SessionId alice = NewSession(kAlice);
  const auto blocks = AllocateAll(alice, 2, MiB(32));
  ASSERT_THAT(Release(alice, blocks[0]), IsOk());
  ASSERT_THAT(Release(alice, blocks[1]), IsOk());
  EXPECT_EQ(At(0).idle, MiB(32));
  EXPECT_EQ(At(1).idle, MiB(32));
}

TEST_F(PoolsTest, AnUnboundedPoolKeepsEverythingUntilTheBudgetNeedsIt) {
  StartWith("unbounded", MiB(200));
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(broker_->Release(alice, AllocateAll(alice, 100, MiB(1))), IsOk());
  EXPECT_EQ(At(0).idle_blocks, 100u);
  ASSERT_THAT(Allocate(alice, MiB(176)), IsOk());
  EXPECT_EQ(NotKept(At(0), NotKeptReason::kPressure), 76u);
  CheckSums();
}

TEST_F(PoolsTest, IdleBlocksLeaveAfterTheirTime) {
  LedgerOptions options;
  options.admission.idle_ttl = absl::Minutes(10);
  StartWith("device_local", GiB(1), options);
  const SessionId alice = NewSession(kAlice);
  const auto blocks = AllocateAll(alice, 2, MiB(1));
  ASSERT_THAT(Release(alice, blocks[0]), IsOk());
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Minutes(10));
  AdvanceAndTick(absl::Minutes(6));
  ASSERT_THAT(Release(alice, blocks[1]), IsOk());
  AdvanceAndTick(absl::Minutes(4) - absl::Nanoseconds(1));
  EXPECT_EQ(At(0).idle_blocks, 2u);
  alarm_.TakeTime();
  AdvanceAndTick(absl::Nanoseconds(1));
  EXPECT_EQ(At(0).idle_blocks, 1u);
  EXPECT_EQ(NotKept(At(0), NotKeptReason::kTtl), 1u);
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Minutes(6));
  AdvanceAndTick(absl::Minutes(6));
  EXPECT_EQ(At(0).idle_blocks, 0u);
  executor_.RunAll();
  EXPECT_EQ(device_->counts().live, 0u);
}

TEST_F(PoolsTest, ATimeOfZeroMeansForEver) {
  LedgerOptions options;
  options.admission.idle_ttl = absl::ZeroDuration();
  StartWith("device_local", GiB(1), options);
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Release(alice, AllocateAll(alice, 1, MiB(1))[0]), IsOk());
  EXPECT_EQ(alarm_.TakeTime(), absl::InfiniteFuture());
  AdvanceAndTick(absl::Hours(1000));
  EXPECT_EQ(At(0).idle_blocks, 1u);
}

TEST_F(PoolsTest, UnderPressureSegmentsThatNobodyUsesGoLastTheLeastRecentlyUsedFirst) {
  StartWith("device_local", MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  std::vector<SegmentId> segments;
  for (const char* name : {"one", "two"}) {
    const CallId call = NewCall();
    ASSERT_THAT(
        broker_->OpenSegment(alice, call, {name, OpenMode::kCreateOrAttach, MiB(32), MemoryKind()}),
        IsOk());
    executor_.RunAll();
    ASSERT_OK_AND_ASSIGN(const SegmentView view, events_.segment(call));
    segments.push_back(view.id);
    ASSERT_THAT(broker_->SealSegment(alice, view.id, {}), IsOk());
  }
  ASSERT_THAT(broker_->CloseSegment(alice, segments[1]), IsOk());
  ASSERT_THAT(broker_->CloseSegment(alice, segments[0]), IsOk());
  ASSERT_THAT(Release(alice, AllocateAll(alice, 1, MiB(20))[0]), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(30)), IsOk());
  EXPECT_EQ(At(0).idle, Bytes());
  EXPECT_EQ(broker_->ListSegments().size(), 2u) << "the idle block was enough";
  ASSERT_THAT(Allocate(bob, MiB(30)), IsOk());
  ASSERT_EQ(broker_->ListSegments().size(), 1u);
  EXPECT_EQ(broker_->ListSegments()[0].name, "one");
  CheckSums();
}

TEST_F(PoolsTest, TrimFreesTheOldestUntilTheTargetHolds) {
  StartWith("device_local");
  const SessionId alice = NewSession(kAlice);
  const auto blocks = AllocateAll(alice, 4, MiB(8));
  const void* const newest = MemoryOf(alice, blocks[2]);
  ASSERT_THAT(broker_->Release(alice, {blocks[0], blocks[1], blocks[2]}), IsOk());
  ASSERT_OK_AND_ASSIGN(const TrimResult result, broker_->Trim({std::nullopt, MiB(17), false}));
  EXPECT_EQ(result.blocks, 2u) << "16 MiB may stay, 24 MiB not";
  EXPECT_EQ(result.bytes, MiB(16));
  EXPECT_EQ(At(0).idle, MiB(8));
  EXPECT_EQ(At(0).leased, MiB(8));
  EXPECT_EQ(NotKept(At(0), NotKeptReason::kTrim), 2u);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock again, Allocate(alice, MiB(8)));
  EXPECT_EQ(MemoryOf(alice, again.id), newest);
  CheckSums();
}

TEST_F(PoolsTest, TrimOfZeroFreesAllThatIsIdleAndNothingThatIsHeld) {
  StartWith("device_local");
  const SessionId alice = NewSession(kAlice);
  const auto blocks = AllocateAll(alice, 4, MiB(8));
  ASSERT_THAT(Release(alice, blocks[0]), IsOk());
  ASSERT_THAT(broker_->Trim({std::nullopt, Bytes(), false}), IsOk());
  executor_.RunAll();
  EXPECT_EQ(At(0).total(), MiB(24));
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 3u);
  ASSERT_OK_AND_ASSIGN(const TrimResult again, broker_->Trim({std::nullopt, Bytes(), false}));
  EXPECT_EQ(again.blocks, 0u);
}

TEST_F(PoolsTest, BytesThatAreReservedOrBeingFreedDoNotCountInATrim) {
  StartWith("device_local");
  const SessionId alice = NewSession(kAlice);
  const auto blocks = AllocateAll(alice, 2, MiB(8));
  ASSERT_THAT(broker_->Release(alice, blocks), IsOk());
  StartAllocate(alice, MiB(64));
  ASSERT_OK_AND_ASSIGN(const TrimResult result, broker_->Trim({std::nullopt, MiB(8), false}));
  EXPECT_EQ(result.blocks, 1u);
  EXPECT_EQ(At(0).being_freed, MiB(8));
  ASSERT_OK_AND_ASSIGN(const TrimResult again, broker_->Trim({std::nullopt, MiB(8), false}));
  EXPECT_EQ(again.blocks, 0u);
}

TEST_F(PoolsTest, TrimOfANamedPoolLeavesTheOthers) {
  StartWith("device_local=1mib,device_local");
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Release(alice, AllocateAll(alice, 1, MiB(1))[0]), IsOk());
  ASSERT_THAT(Release(alice, AllocateAll(alice, 1, MiB(8))[0]), IsOk());
  ASSERT_THAT(broker_->Trim({At(1).name, Bytes(), false}), IsOk());
  EXPECT_EQ(At(0).idle, MiB(1));
  EXPECT_EQ(At(1).idle, Bytes());
  EXPECT_THAT(broker_->Trim({"nonsense", Bytes(), false}),
              StatusIs(StatusCode::kNotFound, "has no pool \"nonsense\"; it has \"device_local"));
}

TEST_F(PoolsTest, TrimFreesUnusedSegmentsOnlyWhereAskedTo) {
  StartWith("device_local");
  const SessionId alice = NewSession(kAlice);
  const CallId call = NewCall();
  ASSERT_THAT(broker_->OpenSegment(alice, call,
                                   {"weights", OpenMode::kCreateOrAttach, MiB(8), MemoryKind()}),
              IsOk());
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const SegmentView view, events_.segment(call));
  ASSERT_THAT(broker_->SealSegment(alice, view.id, {}), IsOk());
  ASSERT_OK_AND_ASSIGN(TrimResult result, broker_->Trim({std::nullopt, Bytes(), true}));
  EXPECT_EQ(result.blocks, 0u) << "is in use";
  ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  ASSERT_OK_AND_ASSIGN(result, broker_->Trim({std::nullopt, Bytes(), false}));
  EXPECT_EQ(result.blocks, 0u);
  ASSERT_OK_AND_ASSIGN(result, broker_->Trim({std::nullopt, Bytes(), true}));
  EXPECT_EQ(result.blocks, 1u);
  EXPECT_EQ(result.bytes, MiB(8));
  EXPECT_TRUE(broker_->ListSegments().empty());
}

TEST_F(PoolsTest, SaysWhyARequestWasNoHit) {
  StartWith("device_local");
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const BlockId block = AllocateAll(alice, 1, MiB(8))[0];
  EXPECT_EQ(Misses(At(0), MissReason::kNoIdleBlock), 1u);
  ASSERT_THAT(Release(alice, block), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(8)), IsOk());
  EXPECT_EQ(Misses(At(0), MissReason::kOtherTenantsOnly), 1u);
  ASSERT_THAT(Allocate(alice, MiB(1)), IsOk());
  EXPECT_EQ(Misses(At(0), MissReason::kOnlyTooLarge), 1u);
  ASSERT_THAT(Allocate(alice, MiB(16)), IsOk());
  EXPECT_EQ(Misses(At(0), MissReason::kOnlyTooSmall), 1u);
  EXPECT_EQ(At(0).requests, 4u);
  EXPECT_EQ(At(0).total_misses(), 4u);
}

TEST_F(PoolsTest, CountsBytesInTheStateThatTheyAreIn) {
  StartWith("device_local");
  const SessionId alice = NewSession(kAlice);
  const CallId call = StartAllocate(alice, MiB(7) - Bytes(9));
  EXPECT_EQ(At(0).reserved, MiB(7));
  EXPECT_EQ(At(0).rounding, Bytes());
  executor_.RunAll();
  EXPECT_EQ(At(0).reserved, Bytes());
  EXPECT_EQ(At(0).leased, MiB(7));
  EXPECT_EQ(At(0).rounding, Bytes(9));
  EXPECT_EQ(At(0).leased_blocks, 1u);
  ASSERT_THAT(Release(alice, events_.grant(call)->blocks[0].id), IsOk());
  EXPECT_EQ(At(0).idle, MiB(7));
  EXPECT_EQ(At(0).rounding, Bytes());
  EXPECT_EQ(At(0).largest_idle_block, MiB(7));
  ASSERT_THAT(broker_->Trim({std::nullopt, Bytes(), false}), IsOk());
  EXPECT_EQ(At(0).being_freed, MiB(7));
  executor_.RunAll();
  EXPECT_EQ(At(0).total(), Bytes());
  EXPECT_EQ(At(0).peak_leased, MiB(7));
  EXPECT_EQ(At(0).peak_idle, MiB(7));
  EXPECT_EQ(At(0).peak_total, MiB(7));
  EXPECT_EQ(Heap().peak_in_use, MiB(7));
}

}  // namespace
}  // namespace heapbroker

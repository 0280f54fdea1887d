// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_broker.h"

#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using DeviceBrokerTest = CoreTest;

TEST_F(DeviceBrokerTest, LeasesAFreshBlockWithTheFactsOfItsImport) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1) - Bytes(1)));
  EXPECT_EQ(block.size, MiB(1) - Bytes(1));
  EXPECT_EQ(block.allocation_size, MiB(1));
  EXPECT_EQ(Pool().leased, MiB(1));
  EXPECT_EQ(Pool().rounding, Bytes(1));
  CheckSums();
}

TEST_F(DeviceBrokerTest, ServesTheSameTenantFromTheCacheWithoutADeviceCall) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(1)));
  const void* const memory = MemoryOf(alice, first.id);
  ASSERT_THAT(Release(alice, first.id), IsOk());
  auto outcome = broker_->Allocate(other, NewCall(), AllocateOf({Ask(MiB(1))}));
  ASSERT_THAT(outcome, IsOk());
  ASSERT_TRUE(std::holds_alternative<Grant>(*outcome));
  EXPECT_EQ(MemoryOf(other, std::get<Grant>(*outcome).blocks[0].id), memory);
  EXPECT_EQ(device_->counts().allocations, 1u);
  EXPECT_EQ(Pool().hits, 1u);
}

TEST_F(DeviceBrokerTest, NeverLeasesATenantsBlockToAnother) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(1)), IsOk());
  EXPECT_EQ(device_->counts().allocations, 2u);
}

TEST_F(DeviceBrokerTest, FreesItsCacheBeforeItRefuses) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(60)));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(80)), IsOk());
  EXPECT_EQ(Pool().not_kept[static_cast<size_t>(NotKeptReason::kPressure)], 1u);
  EXPECT_LE(device_->counts().peak_bytes, MiB(100));
  CheckSums();
}

TEST_F(DeviceBrokerTest, CountsBytesAsFreeOnlyWhenTheDeviceHasFreedThem) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(60)));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  const CallId call = StartAllocate(bob, MiB(80));
  EXPECT_EQ(executor_.allocations(), 0u);
  EXPECT_EQ(Pool().being_freed, MiB(60));
  ASSERT_TRUE(executor_.RunFree());
  EXPECT_EQ(executor_.allocations(), 1u);
  executor_.RunAll();
  EXPECT_THAT(events_.grant(call), IsOk());
}

TEST_F(DeviceBrokerTest, RefusesByItsOwnBudgetWhateverTheDriverWouldGive) {
  Start(MiB(800));
  const SessionId alice = NewSession(kAlice);
  int granted = 0;
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<GrantedBlock> block = Allocate(alice, MiB(100));
    granted += block.ok() ? 1 : 0;
    if (!block.ok()) EXPECT_THAT(block, StatusIs(StatusCode::kResourceExhausted, "800.0 MiB"));
  }
  // 100 MiB is rounded to 104 while that fits.
  EXPECT_GE(granted, 7);
  EXPECT_LE(device_->counts().peak_bytes, MiB(800));
  CheckSums();
}

TEST_F(DeviceBrokerTest, TakesTheExactSizeWhereTheRoundedOneDoesNotFit) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(99)));
  EXPECT_EQ(block.allocation_size, MiB(99));
}

TEST_F(DeviceBrokerTest, SaysThatARequestCanNeverFit) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  EXPECT_THAT(Allocate(alice, MiB(101)), StatusIs(StatusCode::kResourceExhausted, "can never fit"));
  EXPECT_THAT(Allocate(alice, {Ask(MiB(60)), Ask(MiB(60))}),
              StatusIs(StatusCode::kResourceExhausted, "can never fit"));
  CheckSums();
}

TEST_F(DeviceBrokerTest, GrantsABatchWholeOrNotAtAll) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(bob, MiB(40)), IsOk());
  EXPECT_THAT(Allocate(alice, {Ask(MiB(30)), Ask(MiB(32))}),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_EQ(Heap().in_use, MiB(40));
  ASSERT_OK_AND_ASSIGN(const Grant grant, Allocate(alice, {Ask(MiB(30)), Ask(MiB(20))}));
  EXPECT_EQ(grant.blocks.size(), 2u);
  EXPECT_EQ(grant.blocks[1].size, MiB(20));
}

TEST_F(DeviceBrokerTest, UndoesABatchWhenTheDeviceFailsHalfWay) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  const CallId call = NewCall();
  std::vector<BlockRequest> three(3, Ask(MiB(1)));
  ASSERT_THAT(broker_->Allocate(alice, call, AllocateOf(three)), IsOk());
  device_->FailAllocations(absl::InternalError("VK_ERROR_UNKNOWN"), 1);
  executor_.RunAll();
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kInternal, "VK_ERROR_UNKNOWN"));
  EXPECT_EQ(Pool().leased, Bytes());
  EXPECT_EQ(Pool().reserved, Bytes());
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 0u);
  CheckSums();
}

TEST_F(DeviceBrokerTest, TriesOnceMoreWithTheExactSizeWhenTheDriverHasNotEnough) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 1);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(100)));
  EXPECT_EQ(block.allocation_size, MiB(100));
  CheckSums();
}

TEST_F(DeviceBrokerTest, EmptiesItsCacheWhenTheDriverSaysThatMemoryIsOut) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(8)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 2);
  ASSERT_THAT(Allocate(alice, MiB(100)), IsOk());
  EXPECT_EQ(Pool().idle, Bytes());
  EXPECT_EQ(Pool().requests, 2u);
  CheckSums();
}

TEST_F(DeviceBrokerTest, PassesTheDriversRefusalOnWhenNothingIsIdle) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 10);
  EXPECT_THAT(Allocate(alice, MiB(100)),
              StatusIs(StatusCode::kResourceExhausted, "VK_ERROR_OUT_OF_DEVICE_MEMORY"));
  CheckSums();
}

TEST_F(DeviceBrokerTest, BooksWhatThePaddingDriverReallyNeeds) {
  Start(MiB(512));
  device_->PadSizes(KiB(64), Bytes(64));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1) - Bytes(1)));
  EXPECT_EQ(block.allocation_size, MiB(1) + Bytes(64));
  EXPECT_EQ(Heap().in_use, MiB(1) + Bytes(64));
  CheckSums();
}

TEST_F(DeviceBrokerTest, PaddingCannotCarryItOverTheBudget) {
  Start(MiB(1));
  device_->PadSizes(KiB(64), Bytes(64));
  const SessionId alice = NewSession(kAlice);
  EXPECT_THAT(Allocate(alice, MiB(1)), StatusIs(StatusCode::kResourceExhausted, "driver needs"));
  EXPECT_EQ(device_->counts().allocations, 0u);
  CheckSums();
}

TEST_F(DeviceBrokerTest, NeverPassesTheNumberOfAllocationsThatTheDeviceAllows) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(64);
  Start(MiB(512), SimulatedDeviceInfo(), options);
  const SessionId alice = NewSession(kAlice);
  int granted = 0;
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<GrantedBlock> block = Allocate(alice, KiB(4));
    granted += block.ok() ? 1 : 0;
    if (!block.ok()) {
      EXPECT_THAT(block, StatusIs(StatusCode::kResourceExhausted, "64 of 64 allocations"));
    }
  }
  EXPECT_EQ(granted, 64);
  EXPECT_EQ(device_->counts().peak_live, 64u);
}

TEST_F(DeviceBrokerTest, EvictsIdleBlocksWhenAllocationsRunOut) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(2);
  Start(MiB(512), SimulatedDeviceInfo(), options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock one, Allocate(alice, MiB(1)));
  ASSERT_THAT(Allocate(alice, MiB(2)), IsOk());
  ASSERT_THAT(Release(alice, one.id), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(4)), IsOk());
  EXPECT_LE(device_->counts().peak_live, 2u);
}

TEST_F(DeviceBrokerTest, EvictsBlocksOfTenantsWithoutASessionFirst) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob),
                  carol = NewSession(TenantId(3));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock older, Allocate(alice, MiB(40)));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock younger, Allocate(bob, MiB(40)));
  const void* const memory = MemoryOf(alice, older.id);
  ASSERT_THAT(Release(alice, older.id), IsOk());
  ASSERT_THAT(Release(bob, younger.id), IsOk());
  broker_->EndSession(bob);
  executor_.RunAll();
  ASSERT_THAT(Allocate(carol, MiB(40)), IsOk());
  // Alice's is the older one, and is still there.
  ASSERT_OK_AND_ASSIGN(const GrantedBlock again, Allocate(alice, MiB(40)));
  EXPECT_EQ(MemoryOf(alice, again.id), memory);
}

TEST_F(DeviceBrokerTest, ZeroedRequestsClearWhatTheyReuse) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(1)));
  const void* const memory = MemoryOf(alice, first.id);
  ASSERT_THAT(Release(alice, first.id), IsOk());
  BlockRequest zeroed = Ask(MiB(1));
  zeroed.zeroed = true;
  ASSERT_OK_AND_ASSIGN(const Grant grant, Allocate(alice, {zeroed}));
  EXPECT_EQ(MemoryOf(alice, grant.blocks[0].id), memory);
  EXPECT_EQ(device_->counts().clears, 1u);
  CheckSums();
}

TEST_F(DeviceBrokerTest, AFailedClearRefusesTheLeaseAndFreesTheBlock) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  device_->FailClears(absl::InternalError("fence"), 1);
  BlockRequest zeroed = Ask(MiB(1));
  zeroed.zeroed = true;
  EXPECT_THAT(Allocate(alice, {zeroed}), StatusIs(StatusCode::kInternal, "fence"));
  executor_.RunAll();
  EXPECT_EQ(device_->counts().live, 0u);
  CheckSums();
}

TEST_F(DeviceBrokerTest, RefusesSizesAndAlignmentsOutOfRangeByName) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  constexpr uint64_t k63 = uint64_t{1} << 63;
  for (uint64_t size : {uint64_t{0}, k63 - 1, k63, ~uint64_t{0} - 512, ~uint64_t{0}}) {
    EXPECT_THAT(Allocate(alice, Bytes(size)),
                StatusIs(StatusCode::kInvalidArgument, "blocks[0].size"))
        << size;
  }
  for (uint64_t alignment : {uint64_t{3}, uint64_t{48}, uint64_t{8192}, uint64_t{1} << 31, k63}) {
    BlockRequest request = Ask(MiB(1));
    request.alignment = Bytes(alignment);
    EXPECT_THAT(Allocate(alice, {Ask(MiB(1)), request}),
                StatusIs(StatusCode::kInvalidArgument, "blocks[1].alignment"))
        << alignment;
  }
  EXPECT_THAT(Allocate(alice, std::vector<BlockRequest>()),
              StatusIs(StatusCode::kInvalidArgument, "blocks"));
  EXPECT_THAT(Allocate(alice, std::vector<BlockRequest>(kMaxBlocksPerCall + 1, Ask(MiB(1)))),
              StatusIs(StatusCode::kInvalidArgument, "1 to 256"));
  EXPECT_EQ(device_->counts().allocations, 0u);
  CheckSums();
}

TEST_F(DeviceBrokerTest, AnswersForAnothersBlockAsForOneThatDoesNotExist) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
  const absl::Status others = Release(bob, block.id);
  EXPECT_THAT(others, StatusIs(StatusCode::kNotFound, "this session holds no block 64"));
  EXPECT_EQ(broker_->Fetch(bob, block.id).status().message(),
            "block_id: this session holds no block 64");
  EXPECT_THAT(Release(bob, BlockId(99)),
              StatusIs(StatusCode::kNotFound, "this session holds no block 99"));
  EXPECT_THAT(broker_->Fetch(alice, block.id), IsOk());
}

TEST_F(DeviceBrokerTest, ReleasesAllBlocksOfACallOrNone) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const Grant grant, Allocate(alice, {Ask(MiB(1)), Ask(MiB(1))}));
  const BlockId a = grant.blocks[0].id, b = grant.blocks[1].id;
  EXPECT_THAT(broker_->Release(alice, {a, BlockId(77)}), StatusIs(StatusCode::kNotFound, "77"));
  EXPECT_THAT(broker_->Release(alice, {a, a}), StatusIs(StatusCode::kInvalidArgument, "twice"));
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 2u);
  EXPECT_THAT(broker_->Release(alice, {a, b}), IsOk());
  EXPECT_THAT(Release(alice, a), StatusIs(StatusCode::kNotFound, "holds no block"));
  CheckSums();
}

TEST_F(DeviceBrokerTest, ReleasingTwiceCannotTakeALaterLeaseAway) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock second, Allocate(alice, MiB(1)));
  EXPECT_EQ(device_->counts().allocations, 1u);
  EXPECT_THAT(Release(alice, first.id), StatusIs(StatusCode::kNotFound, "holds no block"));
  EXPECT_THAT(Release(alice, second.id), IsOk());
}

TEST_F(DeviceBrokerTest, ASessionMayNotMakeTheDaemonRememberCallsWithoutEnd) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  std::vector<CallId> calls;
  for (size_t i = 0; i < kMaxDeferredCalls; ++i) calls.push_back(StartAllocate(alice, KiB(64)));
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), AllocateOf({Ask(KiB(64))})),
              StatusIs(StatusCode::kResourceExhausted, "256 of 256 waiting calls"));
  EXPECT_THAT(broker_->OpenSegment(alice, NewCall(),
                                   {"weights", OpenMode::kAttachWait, Bytes(), MemoryKind()}),
              StatusIs(StatusCode::kResourceExhausted, "256 of 256 waiting calls"));
  StartAllocate(bob, KiB(64));
  executor_.RunAll();
  for (CallId call : calls) EXPECT_THAT(events_.grant(call), IsOk());
  EXPECT_THAT(Allocate(alice, KiB(64)), IsOk());
}

TEST_F(DeviceBrokerTest, FreesTheBlocksOfAnEndedSessionAndKeepsNone) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  for (int i = 0; i < 100; ++i) ASSERT_THAT(Allocate(alice, MiB(1)), IsOk());
  broker_->EndSession(alice);
  EXPECT_EQ(Pool().being_freed, MiB(100));
  executor_.RunAll();
  EXPECT_EQ(device_->counts().live, 0u);
  EXPECT_EQ(Heap().in_use, Bytes());
  EXPECT_EQ(Pool().not_kept[static_cast<size_t>(NotKeptReason::kUncleanEnd)], 100u);
  broker_->EndSession(alice);
  EXPECT_THAT(Allocate(alice, MiB(1)), StatusIs(StatusCode::kUnauthenticated, "ended"));
  CheckSums();
}

TEST_F(DeviceBrokerTest, AGrantThatComesAfterItsSessionEndedGoesToNobody) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  const CallId call = StartAllocate(alice, MiB(1));
  broker_->EndSession(alice);
  executor_.RunAll();
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_EQ(Pool().leased, Bytes());
  CheckSums();
}

TEST_F(DeviceBrokerTest, ACancelledRequestInWorkEndsWithoutALease) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  const CallId call = StartAllocate(alice, MiB(1));
  broker_->Cancel(alice, call);
  EXPECT_FALSE(events_.Has(call));
  executor_.RunAll();
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 0u);
  EXPECT_EQ(Pool().idle_blocks, 1u);
}

TEST_F(DeviceBrokerTest, ACancelledRequestThatWaitsLeavesAtOnceAndGivesUpWhatItWasPromised) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(60)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const CallId first = StartAllocate(bob, MiB(80));
  EXPECT_EQ(executor_.allocations(), 0u);
  EXPECT_THAT(broker_->Allocate(bob, NewCall(), AllocateOf({Ask(MiB(40))})),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"))
      << "is there, but promised";
  broker_->Cancel(bob, first);
  EXPECT_THAT(events_.grant(first), StatusIs(StatusCode::kCancelled, ""));
  const CallId second = StartAllocate(bob, MiB(40));
  EXPECT_EQ(executor_.allocations(), 1u);
  executor_.RunAll();
  EXPECT_THAT(events_.grant(second), IsOk());
}

TEST_F(DeviceBrokerTest, APromiseThatTheDriverTakesAwayIsRefusedAndNotKeptWaiting) {
  LedgerOptions options;
  options.admission.heaps = {{MiB(100), 1000}};
  Start(options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(60)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const CallId promised = StartAllocate(bob, MiB(80));
  // While the idle block is being freed somebody's job ends, and the driver has less.
  device_->ReportHeaps({{MiB(50), Bytes()}});
  const CallId small = StartAllocate(alice, KiB(64));
  clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(executor_.RunAllocation());
  EXPECT_TRUE(events_.Has(small));
  executor_.RunAll();
  ASSERT_TRUE(events_.Has(promised));
  EXPECT_THAT(events_.grant(promised), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  CheckSums();
}

TEST_F(DeviceBrokerTest, HitsPassThoseThatWait) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock large, Allocate(alice, MiB(56)));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock small, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, large.id), IsOk());
  ASSERT_THAT(Release(alice, small.id), IsOk());
  const CallId waits = StartAllocate(bob, MiB(80));
  auto hit = broker_->Allocate(alice, NewCall(), AllocateOf({Ask(MiB(1))}));
  ASSERT_THAT(hit, IsOk());
  EXPECT_TRUE(std::holds_alternative<Grant>(*hit));
  EXPECT_FALSE(events_.Has(waits));
  executor_.RunAll();
  EXPECT_THAT(events_.grant(waits), IsOk());
}

TEST_F(DeviceBrokerTest, ASoftwareDeviceServesOneTenantOnly) {
  LedgerOptions options;
  options.tenants = TenantRule::kFirstTenantOnly;
  Start(MiB(512), SimulatedDeviceInfo(), options);
  NewSession(kAlice);
  EXPECT_THAT(broker_->AddSession(SessionId(50), kBob),
              StatusIs(StatusCode::kPermissionDenied, "serves uid 1001"));
  EXPECT_THAT(broker_->AddSession(SessionId(51), kAlice), IsOk());
}

TEST_F(DeviceBrokerTest, EvictingEverythingLeavesOnlyWhatIsHeld) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(1)));
  ASSERT_THAT(Allocate(alice, MiB(2)), IsOk());
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  broker_->EvictEverything();
  executor_.RunAll();
  EXPECT_EQ(device_->counts().live_bytes, MiB(2));
}

}  // namespace
}  // namespace heapbroker

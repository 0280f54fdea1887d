// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Promises: bytes that are idle or being freed, kept for one order.
#include <vector>

#include "daemon/core/order_plan.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class PromiseTest : public CoreTest {
 protected:
  // The driver's figures count, as far as they say less than `budget`.
  void StartWithDriver(Bytes budget) {
    LedgerOptions options;
    options.admission.heaps = {HeapLimit{budget, 1000}};
    Start(options);
  }
  void DriverOffers(Bytes budget) { device_->ReportHeaps({{budget, Bytes(1)}}); }
};

TEST_F(PromiseTest, AnOrderWaitsForItsOwnEvictionsWithoutADeadline) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(64)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const CallId call = StartAllocate(bob, MiB(80));
  EXPECT_EQ(Heap().waiting_requests, 0u);
  EXPECT_FALSE(executor_.RunAllocation());
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(call));
  CheckSums();
}

TEST_F(PromiseTest, AreNotBackedByABlockThatTheSameOrderReuses) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Allocate(alice, MiB(28)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(60)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  // 12 MiB are free and 60 MiB idle: the block for the second, or its bytes for the
  // first, but not both.
  EXPECT_THAT(Allocate(alice, {Ask(MiB(20)), Ask(MiB(56))}),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_EQ(Pool().idle, MiB(60));
  EXPECT_EQ(Heap().in_use, MiB(88));
  CheckSums();
}

TEST_F(PromiseTest, EvictMoreWhereTheDriverOffersLessThanIsInUse) {
  StartWithDriver(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(alice, MiB(40)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(32)));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock second, Allocate(alice, MiB(20)));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  ASSERT_THAT(Release(alice, second.id), IsOk());
  // 92 MiB are in use, 52 MiB of that idle.
  DriverOffers(MiB(72));
  clock_.Advance(absl::Seconds(2));
  const CallId other = StartAllocate(alice, MiB(1));
  ASSERT_TRUE(executor_.RunAllocation());
  EXPECT_TRUE(IsGranted(other));
  ASSERT_EQ(Pool().being_freed, MiB(32));
  ASSERT_EQ(Pool().idle, MiB(20));
  // 72 MiB less 41 held: enough for 28, if the other idle block goes, too.
  const CallId call = StartAllocate(bob, MiB(28));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(call));
  CheckSums();
}

TEST_F(PromiseTest, AreTakenBackWhereTheDriverNoLongerOffersTheBytes) {
  StartWithDriver(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob), carol = NewSession(kBob);
  ASSERT_THAT(Allocate(alice, MiB(8)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(80)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  DriverOffers(MiB(40));
  clock_.Advance(absl::Seconds(2));
  const CallId small = StartAllocate(carol, MiB(1));
  const CallId promised = StartAllocate(bob, MiB(80));
  AllocateRequest patient = WaitingFor(MiB(6), absl::Seconds(60));
  const CallId waiting = Start(carol, patient);
  ASSERT_TRUE(executor_.RunAllocation()) << "after which the driver is asked";
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(small));
  EXPECT_TRUE(IsGranted(waiting));
  // It could not be had before the driver offers more: to wait for that has no end.
  ASSERT_TRUE(events_.Has(promised));
  EXPECT_THAT(events_.grant(promised), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  CheckSums();
}

TEST_F(PromiseTest, ThatAreTakenBackWaitOnIfTheirOrderMay) {
  StartWithDriver(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(alice, MiB(8)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(80)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  DriverOffers(MiB(40));
  clock_.Advance(absl::Seconds(2));
  StartAllocate(alice, MiB(1));
  const CallId call = StartWaiting(bob, MiB(80));
  ASSERT_TRUE(executor_.RunAllocation());
  executor_.RunAll();
  EXPECT_FALSE(events_.Has(call));
  EXPECT_EQ(Heap().waiting_requests, 1u);
  DriverOffers(MiB(100));
  clock_.Advance(absl::Seconds(2));
  broker_->Tick();
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(call));
  CheckSums();
}

TEST_F(PromiseTest, OfAnOrderThatIsCancelledGoBackWithItsIdleBlocks) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock own, Allocate(bob, MiB(8)));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(64)));
  ASSERT_THAT(Release(bob, own.id), IsOk());
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const CallId call = Start(bob, AllocateOf({Ask(MiB(8)), Ask(MiB(80))}));
  EXPECT_EQ(Pool().leased, MiB(8));
  broker_->Cancel(bob, call);
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_EQ(Pool().leased, Bytes());
  EXPECT_EQ(Pool().idle, MiB(8));
  executor_.RunAll();
  EXPECT_THAT(Allocate(bob, MiB(90)), IsOk());
  CheckSums();
}

TEST_F(PromiseTest, AreKeptInTheOrderInWhichTheyWereMade) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  std::vector<BlockId> idle;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(32)));
    idle.push_back(block.id);
  }
  ASSERT_THAT(broker_->Release(alice, idle), IsOk());
  const CallId first = StartAllocate(bob, MiB(60));
  const CallId second = StartAllocate(bob, MiB(30));
  ASSERT_TRUE(executor_.RunFree());
  EXPECT_EQ(executor_.allocations(), 0u) << "32 MiB are there, and the first one's";
  ASSERT_TRUE(executor_.RunFree());
  ASSERT_TRUE(executor_.RunAllocation());
  EXPECT_TRUE(IsGranted(first));
  EXPECT_FALSE(events_.Has(second));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(second));
  CheckSums();
}

TEST_F(PromiseTest, OfAnOrderWhoseTimeIsUpEndWithARefusal) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(64)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  const CallId call = StartWaiting(bob, MiB(80), absl::Seconds(1));
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Seconds(1));
  AdvanceAndTick(absl::Seconds(1));
  ASSERT_TRUE(events_.Has(call)) << "the driver is still freeing";
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kResourceExhausted, "in time"));
  executor_.RunAll();
  EXPECT_THAT(Allocate(bob, MiB(100)), IsOk());
  CheckSums();
}

TEST_F(PromiseTest, OutlastTheTimeForWhatOthersHoldButNotTheCall) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(64)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  AllocateRequest request = WaitingFor(MiB(80), absl::Seconds(1));
  request.answer_by = clock_.Now() + absl::Seconds(3);
  const CallId call = Start(bob, request);
  request.wait_until = std::nullopt;
  request.blocks = {Ask(MiB(10))};
  const CallId small = Start(bob, request);
  AdvanceAndTick(absl::Seconds(2));
  EXPECT_FALSE(events_.Has(call)) << "nobody holds what it waits for";
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_TRUE(events_.Has(call));
  EXPECT_FALSE(events_.Has(small)) << "the device is at work for it";
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(small));
  CheckSums();
}

TEST_F(PromiseTest, EndWithTheTimeOfACallThatRepeatsTheRequest) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(64)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  AllocateRequest request = WaitingFor(MiB(80), absl::Seconds(1));
  request.request_id = RequestId(5);
  Start(bob, request);
  request.answer_by += absl::Seconds(2);
  const CallId again = Start(bob, request);
  AdvanceAndTick(absl::Seconds(2));
  EXPECT_FALSE(events_.Has(again));
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_TRUE(events_.Has(again));
}

}  // namespace
}  // namespace heapbroker

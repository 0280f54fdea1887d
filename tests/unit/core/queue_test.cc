// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who waits, in which order they are served, and when they are refused.
#include <algorithm>
#include <vector>

#include "daemon/core/admission.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
constexpr TenantId kCarol{1003};

// A budget of 100 MiB, of which one session of a tenant of its own holds ten blocks
// of 8 MiB and one of 16 MiB.
class QueueTest : public CoreTest {
 protected:
  void StartFull(LedgerOptions options = {}) {
    Start(MiB(96), SimulatedDeviceInfo(), std::move(options));
    hog_ = NewSession(TenantId(7));
    for (int i = 0; i < 12; ++i) {
      const auto block = Allocate(hog_, MiB(8));
      ASSERT_THAT(block, IsOk());
      held_.push_back(block->id);
    }
  }
  // Gives `blocks` blocks of 8 MiB free, for anyone.
  void Free(size_t blocks) {
    for (; blocks > 0; --blocks) {
      ASSERT_THAT(Release(hog_, held_.back()), IsOk());
      held_.pop_back();
    }
    executor_.RunAll();
  }
  CallId Wait(SessionId session, Bytes size, Priority priority = Priority::kNormal) {
    AllocateRequest request = WaitingFor(size, absl::Seconds(60));
    request.priority = priority;
    return CoreTest::Start(session, request);
  }
  // Those of `calls` that were granted, as their positions.
  std::vector<size_t> Granted(const std::vector<CallId>& calls) const {
    std::vector<size_t> granted;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (IsGranted(calls[i])) granted.push_back(i);
    }
    return granted;
  }
  // In which order they are granted, when blocks become free one after the other.
  std::vector<size_t> OrderOfGrants(const std::vector<CallId>& calls) {
    std::vector<size_t> order;
    for (size_t i = 0; i < calls.size(); ++i) {
      Free(1);
      for (size_t call : Granted(calls)) {
        if (std::find(order.begin(), order.end(), call) == order.end()) order.push_back(call);
      }
      EXPECT_EQ(order.size(), i + 1) << "one block, one grant";
    }
    return order;
  }

  SessionId hog_;
  std::vector<BlockId> held_;
};

TEST_F(QueueTest, TenantsTakeTurns) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob), carol = NewSession(kCarol);
  const std::vector<CallId> calls = {Wait(alice, MiB(8)), Wait(alice, MiB(8)), Wait(alice, MiB(8)),
                                     Wait(bob, MiB(8)),   Wait(bob, MiB(8)),   Wait(carol, MiB(8))};
  EXPECT_EQ(Heap().waiting_requests, 6u);
  EXPECT_EQ(OrderOfGrants(calls), (std::vector<size_t>{0, 3, 5, 1, 4, 2}));
  EXPECT_EQ(broker_->Stats().requests.queued, 6u);
}

TEST_F(QueueTest, TwoSessionsOfATenantHaveOneTurn) {
  StartFull();
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice), bob = NewSession(kBob);
  const std::vector<CallId> calls = {Wait(alice, MiB(8)), Wait(other, MiB(8)), Wait(bob, MiB(8))};
  EXPECT_EQ(OrderOfGrants(calls), (std::vector<size_t>{0, 2, 1}));
}

TEST_F(QueueTest, InsideATenantTheHighestPriorityGoesFirstThenWhoCameFirst) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  const std::vector<CallId> calls = {
      Wait(alice, MiB(8), Priority::kLow), Wait(alice, MiB(8), Priority::kNormal),
      Wait(alice, MiB(8), Priority::kHigh), Wait(alice, MiB(8), Priority::kNormal),
      Wait(alice, MiB(8), Priority::kHigh)};
  // The first was alone when it came, and is the head.
  EXPECT_EQ(OrderOfGrants(calls), (std::vector<size_t>{0, 2, 4, 1, 3}));
}

TEST_F(QueueTest, PrioritiesMeanNothingBetweenTenants) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob), carol = NewSession(kCarol);
  const std::vector<CallId> calls = {Wait(carol, MiB(8)), Wait(alice, MiB(8), Priority::kLow),
                                     Wait(bob, MiB(8), Priority::kHigh)};
  EXPECT_EQ(OrderOfGrants(calls), (std::vector<size_t>{0, 1, 2}));
}

TEST_F(QueueTest, OnlyTheHeadGetsWhatBecomesFree) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId large = Wait(alice, MiB(32)), small = Wait(bob, MiB(8));
  Free(3);
  EXPECT_FALSE(events_.Has(large));
  EXPECT_FALSE(events_.Has(small)) << "24 MiB are there, for the head";
  Free(1);
  EXPECT_TRUE(IsGranted(large));
  EXPECT_FALSE(events_.Has(small));
  Free(1);
  EXPECT_TRUE(IsGranted(small));
  CheckSums();
}

TEST_F(QueueTest, ARequestThatDoesNotWaitMayHaveWhatTheHeadLeaves) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId head = Wait(alice, MiB(32));
  Free(2);
  const auto refused = Allocate(bob, MiB(8));
  EXPECT_THAT(refused, StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  const std::optional<Refusal> refusal = RefusalOf(refused.status());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->free, 0u) << "is the head's";
  EXPECT_EQ(refusal->in_use, MiB(96).count());
  EXPECT_FALSE(events_.Has(head));
}

TEST_F(QueueTest, TheHeadHoldsItsTurnForFiveSecondsThenGoesBehindItsTenantsOthers) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId large = Wait(alice, MiB(64)), later = Wait(alice, MiB(8)), small = Wait(bob, MiB(8));
  Free(2);
  AdvanceAndTick(absl::Milliseconds(4999));
  EXPECT_FALSE(events_.Has(small));
  AdvanceAndTick(absl::Milliseconds(1));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(small)) << "the turn is another tenant's";
  EXPECT_TRUE(IsGranted(later)) << "and then that of the tenant's next";
  EXPECT_FALSE(events_.Has(large));
  Free(8);
  EXPECT_TRUE(IsGranted(large));
}

TEST_F(QueueTest, TheAlarmIsSetToTheEndOfTheHeadsTime) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  Wait(alice, MiB(64));
  Wait(bob, MiB(64));
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Seconds(5));
  for (int i = 0; i < 3; ++i) {
    AdvanceAndTick(absl::Seconds(5));
    EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Seconds(5)) << "bob's, nobody's, alice's";
  }
}

TEST_F(QueueTest, HitsOnTheTenantsOwnIdleBlocksPassTheQueue) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  Free(1);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock own, Allocate(alice, MiB(8)));
  const CallId head = Wait(bob, MiB(64)), waits = Wait(alice, MiB(8));
  ASSERT_THAT(Release(alice, own.id), IsOk());
  EXPECT_TRUE(IsGranted(waits)) << "with the block that was released";
  EXPECT_FALSE(events_.Has(head));
  ASSERT_THAT(Release(alice, events_.grant(waits)->blocks[0].id), IsOk());
  executor_.RunAll();
  EXPECT_FALSE(events_.Has(head));
}

TEST_F(QueueTest, ABlockOfACancelledRequestServesItsTenantsNextOne) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  Free(1);
  const CallId in_work = StartAllocate(alice, MiB(8));
  ASSERT_TRUE(executor_.RunFree()) << "of what was evicted for it";
  const CallId head = Wait(bob, MiB(64)), waits = Wait(alice, MiB(8));
  broker_->Cancel(alice, in_work);
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(waits));
  EXPECT_FALSE(events_.Has(head));
}

TEST_F(QueueTest, ARequestWithoutADeadlineIsRefusedAtOnce) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), AllocateOf({Ask(MiB(8))})),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_EQ(Heap().waiting_requests, 0u);
  EXPECT_EQ(broker_->Stats().requests.queued, 0u);
  EXPECT_EQ(broker_->Stats().requests.limit_reached, 1u);
}

TEST_F(QueueTest, ADeadlineThatHasPassedIsNone) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), WaitingFor(MiB(8), absl::ZeroDuration())),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
}

TEST_F(QueueTest, AnExpiredRequestLeavesAtOnceAndTheNextTakesItsTurn) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId head = StartWaiting(alice, MiB(64), absl::Seconds(2));
  const CallId next = Wait(bob, MiB(8));
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Milliseconds(1500)) << "to ask clients";
  AdvanceAndTick(absl::Milliseconds(1500));
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Milliseconds(500));
  Free(1);
  AdvanceAndTick(absl::Milliseconds(500));
  EXPECT_THAT(events_.grant(head), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(next));
  EXPECT_EQ(Heap().waiting_requests, 0u);
}

TEST_F(QueueTest, ACancelledRequestLeavesAtOnceAndTheNextTakesItsTurn) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId head = Wait(alice, MiB(64)), next = Wait(bob, MiB(8));
  Free(1);
  broker_->Cancel(alice, head);
  EXPECT_THAT(events_.grant(head), StatusIs(StatusCode::kCancelled, ""));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(next));
  EXPECT_EQ(broker_->Stats().requests.cancelled, 1u);
}

TEST_F(QueueTest, TheEndOfASessionEndsItsWaitingRequests) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId head = Wait(alice, MiB(64)), second = Wait(alice, MiB(8)), next = Wait(bob, MiB(8));
  Free(1);
  broker_->EndSession(alice);
  EXPECT_THAT(events_.grant(head), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_THAT(events_.grant(second), StatusIs(StatusCode::kCancelled, ""));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(next));
}

TEST_F(QueueTest, ASegmentsMemoryWaitsLikeAnyOther) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  OpenSegmentRequest request{"weights", OpenMode::kCreateOrAttach, MiB(16), MemoryKind()};
  EXPECT_THAT(broker_->OpenSegment(alice, NewCall(), request),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  request.wait_until = clock_.Now() + absl::Seconds(60);
  const CallId call = NewCall();
  EXPECT_THAT(broker_->OpenSegment(alice, call, request), IsOk());
  EXPECT_EQ(Heap().waiting_requests, 1u);
  Free(2);
  ASSERT_TRUE(events_.Has(call));
  EXPECT_THAT(events_.segment(call), IsOk());
  CheckSums();
}

TEST_F(QueueTest, WaitsForAllocationsAsForBytes) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(12);
  StartFull(options);
  const SessionId alice = NewSession(kAlice);
  Free(1);
  ASSERT_THAT(Allocate(alice, MiB(1)), IsOk());
  const CallId call = Wait(alice, MiB(1));
  EXPECT_EQ(Heap().waiting_requests, 1u);
  Free(1);
  EXPECT_TRUE(IsGranted(call));
  CheckSums();
}

TEST_F(QueueTest, ARequestThatNeverFitsDoesNotWait) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  const auto refused = broker_->Allocate(alice, NewCall(), WaitingFor(MiB(97), absl::Seconds(60)));
  EXPECT_THAT(refused, StatusIs(StatusCode::kResourceExhausted, "can never fit"));
  EXPECT_EQ(broker_->Stats().requests.never_fit, 1u);
}

TEST_F(QueueTest, TheHeadsTimeEndsAlsoWhereItIsAlone) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  Wait(alice, MiB(64));
  Free(2);
  AdvanceAndTick(absl::Seconds(5));
  EXPECT_THAT(Allocate(bob, MiB(8)), IsOk());
}

TEST_F(QueueTest, TheHeadGoesBehindItsTenantsOthersOfAnyPriority) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  Wait(alice, MiB(64), Priority::kHigh);
  const CallId normal = Wait(alice, MiB(8));
  Free(2);
  AdvanceAndTick(absl::Seconds(5));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(normal));
}

TEST_F(QueueTest, AfterEveryTurnThatEndedInVainNothingIsHeldForAsLongAndThenAgain) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob), carol = NewSession(kCarol);
  Wait(alice, MiB(64));
  Wait(bob, MiB(64));
  Free(2);
  const auto is_held = [&] {
    const auto block = Allocate(carol, MiB(8));
    if (!block.ok()) return true;
    EXPECT_THAT(Release(carol, block->id), IsOk());
    EXPECT_THAT(broker_->Trim({std::nullopt, Bytes(), false}), IsOk());
    executor_.RunAll();
    return false;
  };
  // Alice, bob, nobody, and from the beginning.
  for (const bool held : {true, true, false, true, true, false}) {
    EXPECT_EQ(is_held(), held);
    AdvanceAndTick(absl::Milliseconds(4999));
    EXPECT_EQ(is_held(), held);
    AdvanceAndTick(absl::Milliseconds(1));
  }
}

TEST_F(QueueTest, OneWhoseTurnEndedInVainStillGetsWhatBecomesFree) {
  StartFull();
  const SessionId alice = NewSession(kAlice);
  const CallId call = Wait(alice, MiB(16));
  AdvanceAndTick(absl::Seconds(6));
  Free(2);
  EXPECT_TRUE(IsGranted(call));
}

TEST_F(QueueTest, AnExpiringRequestDoesNotTakeWhatIsTheNextOnes) {
  StartFull();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob), carol = NewSession(kCarol);
  StartWaiting(alice, MiB(64), absl::Seconds(2));
  const CallId next = Wait(bob, MiB(8));
  const CallId late = StartWaiting(carol, MiB(8), absl::Seconds(2));
  Free(1);
  AdvanceAndTick(absl::Seconds(2));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(next));
  EXPECT_FALSE(IsGranted(late));
}

TEST_F(QueueTest, WhatADeadWriterHeldIsTheNextOnesAndNotItsSuccessors) {
  StartFull();
  Free(1);
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice), bob = NewSession(kBob);
  OpenSegmentRequest segment{"weights", OpenMode::kCreateOrAttach, MiB(8), MemoryKind()};
  ASSERT_THAT(broker_->OpenSegment(alice, NewCall(), segment), IsOk());
  executor_.RunAll();
  Wait(alice, MiB(8));  // Whose turn it is.
  const CallId successor = NewCall();
  segment.wait_until = clock_.Now() + absl::Seconds(60);
  ASSERT_THAT(broker_->OpenSegment(other, successor, segment), IsOk());
  const CallId next = Wait(bob, MiB(8));
  broker_->EndSession(alice);
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(next));
  EXPECT_FALSE(events_.Has(successor));
}

TEST_F(QueueTest, AWriterThatFollowsAnotherWaitsForMemoryFromThenOn) {
  StartFull();
  Free(1);
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice);
  OpenSegmentRequest segment{"weights", OpenMode::kCreateOrAttach, MiB(8), MemoryKind()};
  const CallId first = NewCall(), second = NewCall();
  ASSERT_THAT(broker_->OpenSegment(alice, first, segment), IsOk());
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const SegmentView view, events_.segment(first));
  segment.wait_until = clock_.Now() + absl::Seconds(2);
  ASSERT_THAT(broker_->OpenSegment(other, second, segment), IsOk());
  StartWaiting(NewSession(kBob), MiB(16));  // Whose turn it is.
  AdvanceAndTick(absl::Seconds(1));
  ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  executor_.RunAll();
  AdvanceAndTick(absl::Milliseconds(1999));
  EXPECT_FALSE(events_.Has(second)) << "it has not waited for memory for as long";
  AdvanceAndTick(absl::Milliseconds(1));
  ASSERT_TRUE(events_.Has(second));
  EXPECT_THAT(events_.segment(second), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Memory that clients keep idle, and how it is asked back.
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
constexpr TenantId kCarol{1003};

class GiveBackTest : public CoreTest {
 protected:
  // A session that holds `blocks` blocks of 8 MiB and says that `idle` are idle.
  SessionId Keeper(TenantId tenant, int blocks, Bytes idle) {
    const SessionId session = NewSession(tenant);
    for (int i = 0; i < blocks; ++i) {
      const auto block = Allocate(session, MiB(8));
      EXPECT_THAT(block, IsOk());
      if (block.ok()) held_.push_back({session, block->id});
    }
    EXPECT_THAT(broker_->ReportIdle(session, {{0, idle}}), IsOk());
    return session;
  }
  void ReleaseOf(SessionId session, size_t blocks) {
    for (auto it = held_.begin(); it != held_.end() && blocks > 0;) {
      if (it->first != session) {
        ++it;
        continue;
      }
      EXPECT_THAT(Release(session, it->second), IsOk());
      it = held_.erase(it);
      --blocks;
    }
    executor_.RunAll();
  }
  struct Wanted {
    SessionId session;
    Bytes bytes;
    absl::Time deadline;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  std::vector<Wanted> TakeWanted() {
    std::vector<Wanted> wanted;
    for (const auto& [session, event] : events_.TakeTold()) {
      const auto* ask = std::get_if<GiveBackWanted>(&event);
      if (ask == nullptr) continue;
      EXPECT_EQ(ask->heap, 0u);
      wanted.push_back({session, ask->bytes, ask->deadline});
    }
    return wanted;
  }

  std::vector<std::pair<SessionId, BlockId>> held_;
};

TEST_F(GiveBackTest, TheLargestIsAskedFirstAndForNoMoreThanIsMissing) {
  Start(MiB(96));
  const SessionId small = Keeper(kAlice, 4, MiB(16)), large = Keeper(kBob, 4, MiB(24));
  Keeper(kCarol, 4, MiB(8));
  const SessionId asker = NewSession(kAlice);
  StartAllocate(asker, MiB(32));
  const absl::Time deadline = clock_.Now() + absl::Milliseconds(500);
  EXPECT_EQ(TakeWanted(),
            (std::vector<Wanted>{{large, MiB(24), deadline}, {small, MiB(8), deadline}}));
}

TEST_F(GiveBackTest, WhatIsReleasedGrantsTheRequestAtOnce) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(16)), asker = NewSession(kAlice);
  const CallId call = StartAllocate(asker, MiB(16));
  EXPECT_EQ(TakeWanted().size(), 1u);
  ReleaseOf(keeper, 2);
  EXPECT_TRUE(IsGranted(call));
  CheckSums();
}

TEST_F(GiveBackTest, IgnoringItIsHarmlessAndTheRequestIsRefusedAfterHalfASecond) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(16)), asker = NewSession(kAlice);
  alarm_.TakeTime();
  const CallId call = StartAllocate(asker, MiB(16));
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Milliseconds(500));
  AdvanceAndTick(absl::Milliseconds(499));
  EXPECT_FALSE(events_.Has(call));
  AdvanceAndTick(absl::Milliseconds(1));
  ASSERT_TRUE(events_.Has(call));
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_EQ(broker_->Holdings(keeper).leased_blocks, 4u);
  ReleaseOf(keeper, 1);
  EXPECT_THAT(Allocate(keeper, MiB(8)), IsOk());
}

TEST_F(GiveBackTest, NobodyIsAskedWhereItWouldNotBeEnough) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  Keeper(kBob, 4, MiB(16));
  const SessionId asker = NewSession(kAlice);
  EXPECT_THAT(broker_->Allocate(asker, NewCall(), AllocateOf({Ask(MiB(24))})),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_TRUE(TakeWanted().empty());
}

TEST_F(GiveBackTest, NobodyIsAskedWhileSomethingIsIdleInAPool) {
  Start(MiB(96));
  const SessionId keeper = Keeper(kBob, 12, MiB(16));
  ReleaseOf(keeper, 1);
  const SessionId asker = NewSession(kAlice);
  ASSERT_THAT(Allocate(asker, MiB(8)), IsOk());
  EXPECT_TRUE(TakeWanted().empty());
}

TEST_F(GiveBackTest, WhoeverWasAskedIsNotAskedAgainAtOnce) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  Keeper(kBob, 4, MiB(16));
  const SessionId asker = NewSession(kAlice);
  StartAllocate(asker, MiB(16));
  EXPECT_EQ(TakeWanted().size(), 1u);
  EXPECT_THAT(broker_->Allocate(asker, NewCall(), AllocateOf({Ask(MiB(16))})),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  AdvanceAndTick(absl::Milliseconds(500));
  StartAllocate(asker, MiB(16));
  EXPECT_EQ(TakeWanted().size(), 1u);
}

TEST_F(GiveBackTest, OneThatWaitsLongerHasItAskedForWhenItIsItsTurn) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(16)), asker = NewSession(kAlice);
  const CallId call = StartWaiting(asker, MiB(8));
  EXPECT_EQ(TakeWanted().size(), 1u);
  AdvanceAndTick(absl::Seconds(10));
  EXPECT_FALSE(events_.Has(call)) << "its own deadline counts";
  ReleaseOf(keeper, 1);
  EXPECT_TRUE(IsGranted(call));
}

TEST_F(GiveBackTest, WhatIsReportedWhileARequestWaitsIsAskedBackBeforeItIsRefused) {
  Start(MiB(96));
  const SessionId keeper = Keeper(kBob, 12, Bytes()), asker = NewSession(kAlice);
  const CallId call = StartWaiting(asker, MiB(8));
  EXPECT_TRUE(TakeWanted().empty());
  clock_.Advance(absl::Seconds(1));
  ASSERT_THAT(broker_->ReportIdle(keeper, {{0, MiB(16)}}), IsOk());
  EXPECT_EQ(TakeWanted(),
            (std::vector<Wanted>{{keeper, MiB(8), clock_.Now() + absl::Milliseconds(500)}}));
  ReleaseOf(keeper, 1);
  EXPECT_TRUE(IsGranted(call));
}

TEST_F(GiveBackTest, AReportIsBelievedUpToWhatTheSessionHolds) {
  Start(MiB(96));
  const SessionId keeper = Keeper(kBob, 3, GiB(1));
  EXPECT_EQ(Heap().idle_in_clients, MiB(24));
  ReleaseOf(keeper, 1);
  EXPECT_EQ(Heap().idle_in_clients, MiB(16));
  ASSERT_THAT(broker_->ReportIdle(keeper, {}), IsOk());
  EXPECT_EQ(Heap().idle_in_clients, Bytes());
}

TEST_F(GiveBackTest, AReportEndsWithItsSession) {
  Start(MiB(96));
  const SessionId keeper = Keeper(kBob, 3, MiB(8));
  EXPECT_EQ(Heap().idle_in_clients, MiB(8));
  broker_->EndSession(keeper);
  EXPECT_EQ(Heap().idle_in_clients, Bytes());
  EXPECT_THAT(broker_->ReportIdle(keeper, {{0, MiB(8)}}),
              StatusIs(StatusCode::kUnauthenticated, "ended"));
}

TEST_F(GiveBackTest, AReportNamesEachHeapOnceAndOnlyHeapsThatThereAre) {
  Start(MiB(96));
  const SessionId keeper = Keeper(kBob, 3, MiB(8));
  EXPECT_THAT(broker_->ReportIdle(keeper, {{1, MiB(8)}}),
              StatusIs(StatusCode::kInvalidArgument, "heap_index: is 1; device 0 has 1 heaps"));
  EXPECT_THAT(broker_->ReportIdle(keeper, {{0, MiB(8)}, {0, MiB(8)}}),
              StatusIs(StatusCode::kInvalidArgument, "heap_index: heap 0 is named twice"));
  EXPECT_EQ(Heap().idle_in_clients, MiB(8)) << "nothing has changed";
}

TEST_F(GiveBackTest, TheNextInTheQueueHasTheRestAskedFor) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(32)), asker = NewSession(kCarol);
  const CallId first = StartWaiting(asker, MiB(8), absl::Seconds(5));
  const CallId second = StartWaiting(asker, MiB(8), absl::Seconds(5));
  EXPECT_EQ(TakeWanted().size(), 1u);
  ReleaseOf(keeper, 1);
  EXPECT_TRUE(IsGranted(first));
  EXPECT_EQ(TakeWanted(),
            (std::vector<Wanted>{{keeper, MiB(8), clock_.Now() + absl::Milliseconds(500)}}))
      << "24 MiB are idle and were never asked for";
  EXPECT_FALSE(events_.Has(second));
}

TEST_F(GiveBackTest, ASecondRequestWithoutADeadlineHasTheRestAskedFor) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(32)), asker = NewSession(kCarol);
  StartAllocate(asker, MiB(8));
  EXPECT_EQ(TakeWanted().size(), 1u);
  AdvanceAndTick(absl::Milliseconds(1));
  const CallId second = StartAllocate(asker, MiB(8));
  EXPECT_EQ(TakeWanted().size(), 1u);
  ReleaseOf(keeper, 2);
  EXPECT_TRUE(IsGranted(second));
}

TEST_F(GiveBackTest, WhoeverIgnoresItIsAskedAgainWhileSomebodyWaits) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(32)), asker = NewSession(kCarol);
  alarm_.TakeTime();
  StartWaiting(asker, MiB(8), absl::Seconds(5));
  EXPECT_EQ(TakeWanted().size(), 1u);
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Milliseconds(500));
  AdvanceAndTick(absl::Milliseconds(499));
  EXPECT_TRUE(TakeWanted().empty());
  AdvanceAndTick(absl::Milliseconds(1));
  EXPECT_EQ(TakeWanted(),
            (std::vector<Wanted>{{keeper, MiB(8), clock_.Now() + absl::Milliseconds(500)}}));
}

TEST_F(GiveBackTest, OneWhoseTurnDoesNotComeHasItAskedForBeforeItsTimeIsUp) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  const SessionId keeper = Keeper(kBob, 4, MiB(16)), asker = NewSession(kCarol);
  StartWaiting(asker, MiB(8));  // Whose turn it is.
  EXPECT_EQ(TakeWanted().size(), 1u);
  const CallId second = StartWaiting(asker, MiB(8), absl::Milliseconds(900));
  AdvanceAndTick(absl::Milliseconds(399));
  EXPECT_TRUE(TakeWanted().empty());
  AdvanceAndTick(absl::Milliseconds(1));
  EXPECT_EQ(TakeWanted(),
            (std::vector<Wanted>{{keeper, MiB(8), clock_.Now() + absl::Milliseconds(500)}}));
  ReleaseOf(keeper, 2);
  EXPECT_TRUE(IsGranted(second));
}

TEST_F(GiveBackTest, OneWithLittleTimeHasItAskedForAtOnceWhoeversTurnItIs) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  Keeper(kBob, 4, MiB(16));
  const SessionId asker = NewSession(kCarol);
  StartWaiting(asker, MiB(8));
  EXPECT_EQ(TakeWanted().size(), 1u);
  StartWaiting(asker, MiB(8), absl::Milliseconds(300));
  EXPECT_EQ(TakeWanted().size(), 1u);
}

TEST_F(GiveBackTest, NoRequestWaitsLongerForItThanItMay) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  Keeper(kBob, 4, MiB(16));
  const CallId call = StartWaiting(NewSession(kCarol), MiB(8), absl::Milliseconds(100));
  AdvanceAndTick(absl::Milliseconds(100));
  ASSERT_TRUE(events_.Has(call));
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
}

TEST_F(GiveBackTest, ARequestThatWaitsAsksForNoMoreThanItLacksHoweverOftenItIsTried) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  Keeper(kBob, 4, MiB(32));
  const SessionId asker = NewSession(kCarol);
  StartWaiting(asker, MiB(16));
  EXPECT_EQ(TakeWanted().size(), 1u);
  AdvanceAndTick(absl::Milliseconds(1));
  ASSERT_THAT(broker_->ReportIdle(asker, {}), IsOk());
  EXPECT_TRUE(TakeWanted().empty());
}

TEST_F(GiveBackTest, ARequestThatMayNotWaitWaitsForItWhileThereIsAnyoneToAnswer) {
  Start(MiB(96));
  Keeper(kAlice, 8, Bytes());
  Keeper(kBob, 4, MiB(16));
  AllocateRequest request = AllocateOf({Ask(MiB(8))});
  request.answer_by = clock_.Now() + absl::Milliseconds(100);
  const CallId call = CoreTest::Start(NewSession(kCarol), request);
  EXPECT_EQ(TakeWanted().size(), 1u);
  AdvanceAndTick(absl::Milliseconds(100));
  ASSERT_TRUE(events_.Has(call));
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
}

}  // namespace
}  // namespace heapbroker

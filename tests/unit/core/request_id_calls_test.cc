// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What repeating a request and undoing it do, in every state that it can be in.
#include "daemon/core/request_ids.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class RequestIdCallsTest : public CoreTest {
 protected:
  AllocateRequest Numbered(uint64_t id, Bytes size) const {
    AllocateRequest request = AllocateOf({Ask(size)});
    request.request_id = RequestId(id);
    return request;
  }
  AllocateRequest NumberedWaiting(uint64_t id, Bytes size) const {
    AllocateRequest request = Numbered(id, size);
    request.wait_until = clock_.Now() + absl::Seconds(60);
    return request;
  }
  // Takes so much of the budget of 100 MiB that nothing over 10 MiB fits.
  BlockId Hog() {
    const SessionId hog = NewSession(TenantId(7));
    hog_ = hog;
    const auto block = Allocate(hog, MiB(90));
    EXPECT_THAT(block, IsOk());
    return block.ok() ? block->id : BlockId();
  }

  SessionId hog_;
};

TEST_F(RequestIdCallsTest, ARepeatedRequestGetsTheSameGrantAtOnce) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  const CallId first = Start(alice, Numbered(5, MiB(1)));
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const Grant granted, events_.grant(first));
  auto again = broker_->Allocate(alice, NewCall(), Numbered(5, MiB(1)));
  ASSERT_THAT(again, IsOk());
  ASSERT_TRUE(std::holds_alternative<Grant>(*again));
  EXPECT_EQ(std::get<Grant>(*again).blocks[0].id, granted.blocks[0].id);
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 1u);
}

TEST_F(RequestIdCallsTest, ARepeatedRequestInWorkAnswersTheLaterCall) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  const CallId first = Start(alice, Numbered(5, MiB(1)));
  const CallId second = Start(alice, Numbered(5, MiB(1)));
  EXPECT_THAT(events_.grant(first), StatusIs(StatusCode::kAborted, "repeated"));
  EXPECT_EQ(executor_.allocations(), 1u);
  executor_.RunAll();
  EXPECT_THAT(events_.grant(second), IsOk());
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 1u);
  EXPECT_EQ(events_.count(), 2u);
}

TEST_F(RequestIdCallsTest, ARepeatedRequestThatWaitsKeepsItsPlace) {
  Start(MiB(100));
  const BlockId held = Hog();
  const SessionId alice = NewSession(kAlice);
  const CallId first = Start(alice, NumberedWaiting(5, MiB(64)));
  const CallId behind = Start(alice, NumberedWaiting(6, MiB(64)));
  const CallId second = Start(alice, NumberedWaiting(5, MiB(64)));
  EXPECT_THAT(events_.grant(first), StatusIs(StatusCode::kAborted, "repeated"));
  EXPECT_EQ(Heap().waiting_requests, 2u);
  ASSERT_THAT(Release(hog_, held), IsOk());
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(second));
  EXPECT_FALSE(events_.Has(behind));
}

TEST_F(RequestIdCallsTest, ARepeatRevivesARequestWhoseCallWasCancelledInWork) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  const CallId first = Start(alice, Numbered(5, MiB(1)));
  broker_->Cancel(alice, first);
  const CallId second = Start(alice, Numbered(5, MiB(1)));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(second));
  EXPECT_EQ(device_->counts().allocations, 1u);
}

TEST_F(RequestIdCallsTest, AnotherRequestUnderTheSameIdIsRefused) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  Start(alice, Numbered(5, MiB(1)));
  const auto other = [&] { return broker_->Allocate(alice, NewCall(), Numbered(5, MiB(2))); };
  EXPECT_THAT(other(), StatusIs(StatusCode::kInvalidArgument, "request_id: 5"));
  executor_.RunAll();
  EXPECT_THAT(other(), StatusIs(StatusCode::kInvalidArgument, "request_id: 5"));
}

TEST_F(RequestIdCallsTest, IdsOfTwoSessionsHaveNothingToDoWithEachOther) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice);
  Start(alice, Numbered(5, MiB(1)));
  Start(other, Numbered(5, MiB(2)));
  executor_.RunAll();
  EXPECT_EQ(broker_->Holdings(other).leased_blocks, 1u);
  EXPECT_THAT(broker_->Undo(other, RequestId(5)), IsOk());
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 1u);
}

TEST_F(RequestIdCallsTest, ARefusedRequestMayBeTriedAgainUnderItsId) {
  Start(MiB(100));
  const BlockId held = Hog();
  const SessionId alice = NewSession(kAlice);
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), Numbered(5, MiB(64))),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  ASSERT_THAT(Release(hog_, held), IsOk());
  const CallId again = Start(alice, Numbered(5, MiB(64)));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(again));
}

TEST_F(RequestIdCallsTest, ARepeatIsAnsweredHoweverManyCallsWait) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  const CallId granted = Start(alice, Numbered(1, KiB(64)));
  executor_.RunAll();
  ASSERT_TRUE(IsGranted(granted));
  for (size_t i = 0; i < kMaxDeferredCalls; ++i) Start(alice, Numbered(2 + i, KiB(64)));
  auto again = broker_->Allocate(alice, NewCall(), Numbered(1, KiB(64)));
  EXPECT_THAT(again, IsOk());
  // No more calls wait for that than before.
  const CallId waits = Start(alice, Numbered(2, KiB(64)));
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), Numbered(999, KiB(64))),
              StatusIs(StatusCode::kResourceExhausted, "256 of 256 waiting calls"));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(waits));
}

TEST_F(RequestIdCallsTest, UndoGivesAGrantBack) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  AllocateRequest request = AllocateOf({Ask(MiB(1)), Ask(MiB(2))});
  request.request_id = RequestId(5);
  const CallId call = Start(alice, request);
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const Grant grant, events_.grant(call));
  ASSERT_THAT(Release(alice, grant.blocks[0].id), IsOk());
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), request),
              StatusIs(StatusCode::kFailedPrecondition, "given back"));
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), IsOk());
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 0u);
  EXPECT_EQ(Pool().idle_blocks, 2u);
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), StatusIs(StatusCode::kNotFound, "request 5"));
  CheckSums();
}

TEST_F(RequestIdCallsTest, UndoEndsARequestThatWaits) {
  Start(MiB(100));
  Hog();
  const SessionId alice = NewSession(kAlice);
  const CallId call = Start(alice, NumberedWaiting(5, MiB(64)));
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), IsOk());
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_EQ(Heap().waiting_requests, 0u);
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), StatusIs(StatusCode::kNotFound, "request 5"));
}

TEST_F(RequestIdCallsTest, UndoEndsARequestThatTheDeviceIsAtWorkFor) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  const CallId call = Start(alice, Numbered(5, MiB(1)));
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), IsOk());
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), StatusIs(StatusCode::kNotFound, "request 5"));
  executor_.RunAll();
  EXPECT_THAT(events_.grant(call), StatusIs(StatusCode::kCancelled, ""));
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 0u);
  CheckSums();
}

TEST_F(RequestIdCallsTest, AnIdThatWasUndoneInWorkStandsForItsNextRequest) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  Start(alice, Numbered(5, MiB(1)));
  ASSERT_THAT(broker_->Undo(alice, RequestId(5)), IsOk());
  const CallId next = Start(alice, Numbered(5, MiB(2)));
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const Grant grant, events_.grant(next));
  auto again = broker_->Allocate(alice, NewCall(), Numbered(5, MiB(2)));
  ASSERT_THAT(again, IsOk());
  ASSERT_TRUE(std::holds_alternative<Grant>(*again)) << "a second grant of one request";
  EXPECT_EQ(std::get<Grant>(*again).blocks[0].id, grant.blocks[0].id);
}

TEST_F(RequestIdCallsTest, ZeroIsNoId) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  Start(alice, Numbered(0, MiB(1)));
  Start(alice, Numbered(0, MiB(2)));
  executor_.RunAll();
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 2u);
  EXPECT_THAT(broker_->Undo(alice, RequestId()), StatusIs(StatusCode::kInvalidArgument, "is 0"));
}

TEST_F(RequestIdCallsTest, ARepeatThatMayNotWaitIsRefusedAtOnce) {
  Start(MiB(100));
  Hog();
  const SessionId alice = NewSession(kAlice);
  const CallId first = Start(alice, NumberedWaiting(5, MiB(64)));
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), Numbered(5, MiB(64))),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_THAT(events_.grant(first), StatusIs(StatusCode::kAborted, "repeated"));
  EXPECT_EQ(Heap().waiting_requests, 0u);
  EXPECT_THAT(broker_->Undo(alice, RequestId(5)), StatusIs(StatusCode::kNotFound, "request 5"));
}

TEST_F(RequestIdCallsTest, ARepeatThatMayNotWaitLeavesItsTurnToTheNext) {
  Start(MiB(100));
  Hog();
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  Start(alice, NumberedWaiting(5, MiB(64)));
  const CallId next = StartWaiting(bob, MiB(2));
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), Numbered(5, MiB(64))),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(next));
}

TEST_F(RequestIdCallsTest, ARepeatWaitsAsLongAsItMayItself) {
  Start(MiB(100));
  Hog();
  const SessionId alice = NewSession(kAlice);
  AllocateRequest request = WaitingFor(MiB(64), absl::Seconds(1));
  request.request_id = RequestId(5);
  Start(alice, request);
  const CallId longer = Start(alice, NumberedWaiting(5, MiB(64)));
  AdvanceAndTick(absl::Seconds(59));
  EXPECT_FALSE(events_.Has(longer));
  request = WaitingFor(MiB(64), absl::Milliseconds(700));
  request.request_id = RequestId(5);
  const CallId shorter = Start(alice, request);
  AdvanceAndTick(absl::Milliseconds(699));
  EXPECT_FALSE(events_.Has(shorter));
  AdvanceAndTick(absl::Milliseconds(1));
  ASSERT_TRUE(events_.Has(shorter));
  EXPECT_THAT(events_.grant(shorter), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
}

TEST_F(RequestIdCallsTest, WhatIsServedAtOnceIsServedHoweverManyCallsWait) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), writer = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, block.id), IsOk());
  OpenSegmentRequest segment{"weights", OpenMode::kCreateOrAttach, MiB(1), MemoryKind()};
  const CallId opened = NewCall();
  ASSERT_THAT(broker_->OpenSegment(writer, opened, segment), IsOk());
  executor_.RunAll();
  ASSERT_OK_AND_ASSIGN(const SegmentView view, events_.segment(opened));
  ASSERT_THAT(broker_->SealSegment(writer, view.id, Checksum{1, 1}), IsOk());
  segment.name = "others";
  ASSERT_THAT(broker_->OpenSegment(writer, NewCall(), segment), IsOk());
  for (size_t i = 0; i < kMaxDeferredCalls; ++i) StartAllocate(alice, KiB(64));

  const auto hit = broker_->Allocate(alice, NewCall(), AllocateOf({Ask(MiB(1))}));
  ASSERT_THAT(hit, IsOk()) << "it does not wait";
  EXPECT_TRUE(std::holds_alternative<Grant>(*hit));
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), AllocateOf({Ask(MiB(1))})),
              StatusIs(StatusCode::kResourceExhausted, "256 of 256 waiting calls"));
  segment.name = "weights";
  EXPECT_THAT(broker_->OpenSegment(alice, NewCall(), segment), IsOk()) << "likewise";
  segment.name = "missing";
  segment.mode = OpenMode::kAttach;
  EXPECT_THAT(broker_->OpenSegment(alice, NewCall(), segment), StatusIs(StatusCode::kNotFound, ""));
  for (const char* name : {"others", "new"}) {
    segment.name = name;
    segment.mode = OpenMode::kCreateOrAttach;
    EXPECT_THAT(broker_->OpenSegment(alice, NewCall(), segment),
                StatusIs(StatusCode::kResourceExhausted, "256 of 256 waiting calls"));
  }
  EXPECT_EQ(broker_->ListSegments().size(), 2u) << "what was refused has left nothing";
  executor_.RunAll();
  CheckSums();
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <variant>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

constexpr Checksum kSum{1, 2};

class SegmentsTest : public CoreTest {
 protected:
  static OpenSegmentRequest Create(const std::string& name, Bytes size) {
    return {name, OpenMode::kCreateOrAttach, size, MemoryKind::kDeviceLocal};
  }
  static OpenSegmentRequest Attach(const std::string& name, OpenMode mode = OpenMode::kAttach) {
    return {name, mode, Bytes(), MemoryKind::kDeviceLocal};
  }

  absl::StatusOr<SegmentView> Open(SessionId session, const OpenSegmentRequest& request) {
    const CallId call = NewCall();
    auto outcome = broker_->OpenSegment(session, call, request);
    if (!outcome.ok()) return outcome.status();
    if (auto* view = std::get_if<SegmentView>(&*outcome)) return *view;
    executor_.RunAll();
    if (!events_.Has(call)) return absl::UnavailableError("still waits");
    return events_.segment(call);
  }
  CallId StartOpen(SessionId session, const OpenSegmentRequest& request) {
    const CallId call = NewCall();
    auto outcome = broker_->OpenSegment(session, call, request);
    EXPECT_THAT(outcome, IsOk());
    EXPECT_TRUE(outcome.ok() && std::holds_alternative<Deferred>(*outcome));
    return call;
  }
  SegmentStats Only() const { return broker_->ListSegments().at(0); }
};

TEST_F(SegmentsTest, TheFirstSessionWritesAndTheOthersAttachToTheSameBlocks) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView writer, Open(first, Create("weights", MiB(10))));
  EXPECT_TRUE(writer.writer);
  EXPECT_FALSE(writer.checksum.has_value());
  const CallId waits = StartOpen(second, Create("weights", MiB(10)));
  EXPECT_EQ(Only().waiting_calls, 1u);
  ASSERT_THAT(broker_->SealSegment(first, writer.id, kSum), IsOk());
  ASSERT_THAT(events_.segment(waits), IsOk());
  const SegmentView& reader = *events_.segment(waits);
  EXPECT_FALSE(reader.writer);
  EXPECT_EQ(reader.blocks.at(0).id, writer.blocks.at(0).id);
  EXPECT_EQ(reader.checksum, kSum);
  EXPECT_EQ(Direct().leased, MiB(10));
  EXPECT_EQ(Only().attached_sessions, 2u);
  EXPECT_THAT(broker_->Fetch(second, reader.blocks.at(0).id), IsOk());
}

TEST_F(SegmentsTest, AnotherSizeOrKindIsRefusedAndBothAreTold) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_THAT(Open(first, Create("weights", MiB(1))), IsOk());
  const absl::Status size = Open(second, Create("weights", MiB(2))).status();
  EXPECT_THAT(size, StatusIs(StatusCode::kAlreadyExists, "1048576 bytes"));
  EXPECT_THAT(size, StatusIs(StatusCode::kAlreadyExists, "2097152 bytes"));
  OpenSegmentRequest kind = Create("weights", MiB(1));
  kind.memory = MemoryKind::kHostVisible;
  EXPECT_THAT(Open(second, kind), StatusIs(StatusCode::kAlreadyExists, "host_visible"));
}

TEST_F(SegmentsTest, TenantsDoNotSeeEachOthersSegments) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const SegmentView hers, Open(alice, Create("weights", MiB(1))));
  ASSERT_THAT(broker_->SealSegment(alice, hers.id, kSum), IsOk());
  EXPECT_THAT(Open(bob, Attach("weights")), StatusIs(StatusCode::kNotFound, "weights"));
  ASSERT_OK_AND_ASSIGN(const SegmentView his, Open(bob, Create("weights", MiB(1))));
  EXPECT_TRUE(his.writer);
  EXPECT_THAT(broker_->CloseSegment(bob, hers.id), StatusIs(StatusCode::kNotFound, ""));
  EXPECT_THAT(broker_->Fetch(bob, hers.blocks.at(0).id), StatusIs(StatusCode::kNotFound, ""));
}

TEST_F(SegmentsTest, TheWritersDeathHandsOverToTheNextWaiterOnFreshBlocks) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice),
                  third = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView abandoned, Open(first, Create("weights", MiB(1))));
  const CallId attacher = StartOpen(third, Attach("weights", OpenMode::kAttachWait));
  const CallId next = StartOpen(second, Create("weights", MiB(1)));
  broker_->EndSession(first);
  executor_.RunAll();
  ASSERT_THAT(events_.segment(next), IsOk());
  const SegmentView& successor = *events_.segment(next);
  EXPECT_TRUE(successor.writer);
  EXPECT_NE(successor.id, abandoned.id);
  EXPECT_NE(successor.blocks.at(0).id, abandoned.blocks.at(0).id);
  EXPECT_FALSE(events_.Has(attacher));
  ASSERT_THAT(broker_->SealSegment(second, successor.id, kSum), IsOk());
  EXPECT_THAT(events_.segment(attacher), IsOk());
  CheckSums();
}

TEST_F(SegmentsTest, ClosingBeforeSealingHandsOverToo) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView abandoned, Open(first, Create("weights", MiB(1))));
  const CallId next = StartOpen(second, Create("weights", MiB(1)));
  ASSERT_THAT(broker_->CloseSegment(first, abandoned.id), IsOk());
  EXPECT_THAT(broker_->Fetch(first, abandoned.blocks.at(0).id),
              StatusIs(StatusCode::kNotFound, ""));
  executor_.RunAll();
  ASSERT_THAT(events_.segment(next), IsOk());
  EXPECT_TRUE(events_.segment(next)->writer);
}

TEST_F(SegmentsTest, TheSuccessorMayNeedTheRoomOfTheAbandonedBlocks) {
  Start(MiB(100));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_THAT(Open(first, Create("weights", MiB(70))), IsOk());
  const CallId next = StartOpen(second, Create("weights", MiB(70)));
  broker_->EndSession(first);
  executor_.RunAll();
  ASSERT_THAT(events_.segment(next), IsOk());
  EXPECT_LE(device_->counts().peak_bytes, MiB(100));
  CheckSums();
}

TEST_F(SegmentsTest, ASegmentWithoutUsersStaysUntilItsBytesAreNeeded) {
  Start(MiB(100));
  const SessionId first = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("weights", MiB(60))));
  ASSERT_THAT(broker_->SealSegment(first, view.id, kSum), IsOk());
  broker_->EndSession(first);
  EXPECT_EQ(Only().state, SegmentState::kUnused);
  const SessionId later = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView again, Open(later, Attach("weights")));
  EXPECT_EQ(again.blocks.at(0).id, view.blocks.at(0).id);
  EXPECT_THAT(Allocate(bob, MiB(80)), StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  ASSERT_THAT(broker_->CloseSegment(later, again.id), IsOk());
  EXPECT_THAT(Allocate(bob, MiB(80)), IsOk());
  EXPECT_TRUE(broker_->ListSegments().empty());
  EXPECT_EQ(Direct().leased, Bytes());
  CheckSums();
}

TEST_F(SegmentsTest, EvictsTheLeastRecentlyUsedSegmentAfterIdleBlocks) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  for (const char* name : {"old", "new"}) {
    ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(alice, Create(name, MiB(30))));
    ASSERT_THAT(broker_->SealSegment(alice, view.id, kSum), IsOk());
    ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const SegmentView used, Open(alice, Attach("old")));
  ASSERT_THAT(broker_->CloseSegment(alice, used.id), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock idle, Allocate(alice, MiB(28)));
  ASSERT_THAT(Release(alice, idle.id), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(36)), IsOk());
  EXPECT_EQ(broker_->ListSegments().size(), 2u);
  ASSERT_THAT(Allocate(bob, MiB(24)), IsOk());
  ASSERT_EQ(broker_->ListSegments().size(), 1u);
  EXPECT_EQ(Only().name, "old");
}

TEST_F(SegmentsTest, ListsAsManyAsAreWantedAboveAnId) {
  Start(MiB(512));
  const SessionId session = NewSession(kAlice);
  std::vector<SegmentId> made;
  for (const char* name : {"d", "a", "c", "b"}) {
    ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(session, Create(name, MiB(1))));
    made.push_back(view.id);
  }
  const auto listed = [this](SegmentId after, size_t limit) {
    std::vector<SegmentId> ids;
    for (const SegmentStats& one : broker_->ListSegments(after, limit)) ids.push_back(one.id);
    return ids;
  };
  EXPECT_EQ(listed(SegmentId(), 3), (std::vector<SegmentId>{made[0], made[1], made[2]}));
  EXPECT_EQ(listed(made[2], 3), std::vector<SegmentId>{made[3]});
  ASSERT_THAT(broker_->CloseSegment(session, made[1]), IsOk());
  EXPECT_EQ(listed(made[0], 1), std::vector<SegmentId>{made[2]});
  EXPECT_EQ(listed(made[1], 1), std::vector<SegmentId>{made[2]});
  EXPECT_TRUE(listed(made[3], 9).empty());
}

TEST_F(SegmentsTest, OnlyTheWriterSealsAndOnlyOnce) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("weights", MiB(1))));
  EXPECT_THAT(broker_->SealSegment(second, view.id, kSum), StatusIs(StatusCode::kNotFound, ""));
  ASSERT_THAT(broker_->SealSegment(first, view.id, kSum), IsOk());
  EXPECT_THAT(broker_->SealSegment(first, view.id, kSum),
              StatusIs(StatusCode::kFailedPrecondition, "sealed already"));
  EXPECT_THAT(broker_->SealSegment(first, SegmentId(99), kSum),
              StatusIs(StatusCode::kNotFound, ""));
}

TEST_F(SegmentsTest, AttachingToNothingIsNotFoundUnlessItWaits) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  EXPECT_THAT(Open(first, Attach("weights")), StatusIs(StatusCode::kNotFound, "weights"));
  const CallId waits = StartOpen(second, Attach("weights", OpenMode::kAttachWait));
  EXPECT_TRUE(broker_->ListSegments().empty());
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("weights", MiB(1))));
  ASSERT_THAT(broker_->SealSegment(first, view.id, kSum), IsOk());
  EXPECT_THAT(events_.segment(waits), IsOk());
}

TEST_F(SegmentsTest, WhoAttachesWithoutWaitingIsToldWhenTheWriterGivesUp) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice),
                  third = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("weights", MiB(1))));
  const CallId attacher = StartOpen(second, Attach("weights"));
  const CallId waiter = StartOpen(third, Attach("weights", OpenMode::kAttachWait));
  ASSERT_THAT(broker_->CloseSegment(first, view.id), IsOk());
  EXPECT_THAT(events_.segment(attacher), StatusIs(StatusCode::kNotFound, "weights"));
  EXPECT_FALSE(events_.Has(waiter));
}

TEST_F(SegmentsTest, WhoAttachesWithoutWaitingStaysWhileAnotherWriterFollows) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice),
                  third = NewSession(kAlice);
  ASSERT_THAT(Open(first, Create("weights", MiB(1))), IsOk());
  const CallId attacher = StartOpen(second, Attach("weights"));
  const CallId creator = StartOpen(third, Create("weights", MiB(1)));
  broker_->EndSession(first);
  executor_.RunAll();
  ASSERT_THAT(events_.segment(creator), IsOk());
  EXPECT_FALSE(events_.Has(attacher));
  ASSERT_THAT(broker_->SealSegment(third, events_.segment(creator)->id, kSum), IsOk());
  EXPECT_THAT(events_.segment(attacher), IsOk());
}

TEST_F(SegmentsTest, CountsSegmentsAndAttachmentsThroughEveryEnd) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("a", MiB(1))));
  ASSERT_THAT(Open(first, Create("b", MiB(2))), IsOk());
  ASSERT_THAT(broker_->SealSegment(first, view.id, kSum), IsOk());
  ASSERT_THAT(Open(second, Attach("a")), IsOk());
  EXPECT_EQ(broker_->Stats().segments, 2u);
  EXPECT_EQ(broker_->Stats().segment_bytes, MiB(3));
  EXPECT_EQ(broker_->Holdings(first).attached_segments, 2u);
  broker_->EndSession(first);
  EXPECT_EQ(broker_->Stats().segments, 1u);
  EXPECT_EQ(broker_->Stats().segment_bytes, MiB(1));
  EXPECT_EQ(broker_->Holdings(first).attached_segments, 0u);
  broker_->EndSession(second);
  EXPECT_EQ(broker_->Holdings(second).attached_segments, 0u);
  broker_->EvictEverything();
  EXPECT_EQ(broker_->Stats().segments, 0u);
  EXPECT_EQ(broker_->Stats().segment_bytes, Bytes());
}

TEST_F(SegmentsTest, AWaitThatIsCancelledEndsAtOnce) {
  Start(MiB(512));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("weights", MiB(1))));
  const CallId waits = StartOpen(second, Create("weights", MiB(1)));
  broker_->Cancel(second, waits);
  EXPECT_THAT(events_.segment(waits), StatusIs(StatusCode::kCancelled, ""));
  ASSERT_THAT(broker_->SealSegment(first, view.id, kSum), IsOk());
  EXPECT_EQ(Only().attached_sessions, 1u);
}

TEST_F(SegmentsTest, AWriterWhoseMemoryIsRefusedLeavesTheNextOneItsTry) {
  Start(MiB(100));
  const SessionId holder = NewSession(kBob), first = NewSession(kAlice),
                  second = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock held, Allocate(holder, MiB(60)));
  const CallId waits = StartOpen(second, Attach("weights", OpenMode::kAttachWait));
  EXPECT_THAT(Open(first, Create("weights", MiB(50))),
              StatusIs(StatusCode::kResourceExhausted, "heap 0"));
  EXPECT_FALSE(events_.Has(waits));
  ASSERT_THAT(Release(holder, held.id), IsOk());
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(first, Create("weights", MiB(50))));
  ASSERT_THAT(broker_->SealSegment(first, view.id, kSum), IsOk());
  EXPECT_THAT(events_.segment(waits), IsOk());
}

TEST_F(SegmentsTest, AWriterThatEndsWhileItsMemoryIsMadeIsSucceeded) {
  Start(MiB(100));
  const SessionId first = NewSession(kAlice), second = NewSession(kAlice);
  const CallId dying = StartOpen(first, Create("weights", MiB(60)));
  const CallId next = StartOpen(second, Create("weights", MiB(60)));
  broker_->EndSession(first);
  executor_.RunAll();
  EXPECT_THAT(events_.segment(dying), StatusIs(StatusCode::kCancelled, ""));
  ASSERT_THAT(events_.segment(next), IsOk());
  EXPECT_TRUE(events_.segment(next)->writer);
  CheckSums();
}

TEST_F(SegmentsTest, ASegmentLargerThanOneBlockIsSeveral) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.max_allocation_size = MiB(16) - Bytes(1);
  Start(MiB(512), info);
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(alice, Create("weights", MiB(40) + Bytes(3))));
  ASSERT_EQ(view.blocks.size(), 3u);
  Bytes sum;
  for (size_t i = 0; i < view.blocks.size(); ++i) {
    sum += view.blocks[i].size;
    if (i + 1 < view.blocks.size()) EXPECT_EQ(view.blocks[i].size, MiB(14));
  }
  EXPECT_EQ(sum, MiB(40) + Bytes(3));
  EXPECT_THAT(Open(alice, Create("monster", Bytes::Max())),
              StatusIs(StatusCode::kInvalidArgument, "size"));
}

TEST_F(SegmentsTest, ASessionThatOpensTwiceIsAttachedUntilItClosesTwice) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const SegmentView view, Open(alice, Create("weights", MiB(1))));
  ASSERT_THAT(broker_->SealSegment(alice, view.id, kSum), IsOk());
  ASSERT_THAT(Open(alice, Attach("weights")), IsOk());
  ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  EXPECT_EQ(Only().state, SegmentState::kSealed);
  ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  EXPECT_EQ(Only().state, SegmentState::kUnused);
  EXPECT_THAT(broker_->CloseSegment(alice, view.id), StatusIs(StatusCode::kNotFound, ""));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What observers are told, in which order, and what else the broker tells.
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class DeviceBrokerTurnsTest : public CoreTest {
 protected:
  // The turns of one kind, in their order.
  template <typename T>
  std::vector<T> Turns() const {
    std::vector<T> found;
    for (const RecordedTurn& recorded : turns_.turns()) {
      if (const T* turn = std::get_if<T>(&recorded.turn)) found.push_back(*turn);
    }
    return found;
  }
  SegmentView Fill(SessionId session, const std::string& name) {
    const CallId call = NewCall();
    EXPECT_THAT(broker_->OpenSegment(session, call,
                                     {name, OpenMode::kCreateOrAttach, MiB(2), MemoryKind()}),
                IsOk());
    executor_.RunAll();
    EXPECT_THAT(events_.segment(call), IsOk());
    return *events_.segment(call);
  }
};

TEST_F(DeviceBrokerTurnsTest, AreCountedUpWithoutAGap) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, block.id), IsOk());
  ASSERT_THAT(broker_->Trim({}), IsOk());
  executor_.RunAll();
  broker_->EndSession(alice);
  uint64_t last = 0;
  for (const RecordedTurn& turn : turns_.turns()) {
    EXPECT_EQ(turn.sequence, ++last);
    EXPECT_EQ(turn.time, clock_.Now());
  }
  EXPECT_GE(last, 8u);
}

TEST_F(DeviceBrokerTurnsTest, TellOfEveryCall) {
  Start(MiB(100));
  device_->ReportHeaps({{MiB(512), MiB(3)}});
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
  ASSERT_THAT(broker_->ReportIdle(alice, {{0, MiB(1)}}), IsOk());
  ASSERT_THAT(Release(alice, block.id), IsOk());
  EXPECT_FALSE(broker_->Undo(alice, RequestId(5)).ok());
  const SegmentView view = Fill(alice, "weights");
  ASSERT_THAT(broker_->SealSegment(alice, view.id, {}), IsOk());
  ASSERT_THAT(broker_->CloseSegment(alice, view.id), IsOk());
  broker_->Cancel(alice, CallId(99));
  ASSERT_THAT(broker_->Trim({}), IsOk());
  executor_.RunAll();
  broker_->Tick();
  broker_->EndSession(alice);
  std::set<size_t> kinds;
  for (const RecordedTurn& turn : turns_.turns()) kinds.insert(turn.turn.index());
  for (size_t kind = 0; kind < std::variant_size_v<Turn>; ++kind) {
    EXPECT_TRUE(kinds.contains(kind)) << "turn " << kind;
  }
}

TEST_F(DeviceBrokerTurnsTest, TellWhatEachCallGotAtOnceOrLater) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock later, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, later.id), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock at_once, Allocate(alice, MiB(1)));
  EXPECT_FALSE(Allocate(alice, MiB(101)).ok());
  const std::vector<CallAnswered> answers = Turns<CallAnswered>();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].blocks, std::vector<BlockId>{later.id});
  EXPECT_EQ(answers[1].blocks, std::vector<BlockId>{at_once.id});
  EXPECT_EQ(answers[2].code, StatusCode::kResourceExhausted);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i].call, CallId(i + 1));
}

TEST_F(DeviceBrokerTurnsTest, TellWhatTheDeviceWasAskedFor) {
  Start(MiB(100));
  device_->PadSizes(KiB(64), Bytes(64));
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 1);
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Allocate(alice, MiB(33)), IsOk());
  const std::vector<JobFilled> jobs = Turns<JobFilled>();
  ASSERT_EQ(jobs.size(), 3u) << "one for each decision";
  using Answers = std::vector<DeviceAnswer>;
  EXPECT_EQ(jobs[0].answers, Answers({{MiB(36) + Bytes(64)}}));
  EXPECT_EQ(jobs[1].answers,
            Answers({{Bytes(), StatusCode::kResourceExhausted}, {MiB(33) + Bytes(64)}}));
  EXPECT_EQ(jobs[2].answers, Answers({{}}));
  EXPECT_FALSE(jobs[0].over || jobs[1].over);
  EXPECT_TRUE(jobs[2].over);
}

TEST_F(DeviceBrokerTurnsTest, TellWhatTheDriverSaysOfItsHeapsAtMostOnceASecond) {
  Start(MiB(100));
  device_->ReportHeaps({{MiB(512), MiB(3)}});
  const SessionId alice = NewSession(kAlice);
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(Allocate(alice, KiB(64)), IsOk());
    clock_.Advance(absl::Milliseconds(250));
  }
  const std::vector<HeapsRead> read = Turns<HeapsRead>();
  ASSERT_EQ(read.size(), 3u) << "at 0, 1 and 2 seconds";
  ASSERT_EQ(read[0].reports.size(), 1u);
  EXPECT_EQ(read[0].reports[0].budget, MiB(512));
}

TEST_F(DeviceBrokerTurnsTest, ASealedSegmentIsToldToAllSessionsOfTheTenant) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice), other = NewSession(kAlice);
  NewSession(kBob);
  const SegmentView view = Fill(alice, "weights");
  events_.TakeTold();
  ASSERT_THAT(broker_->SealSegment(alice, view.id, {}), IsOk());
  std::set<SessionId> told;
  for (const auto& [session, event] : events_.TakeTold()) {
    const auto* sealed = std::get_if<SegmentSealed>(&event);
    ASSERT_NE(sealed, nullptr);
    EXPECT_EQ(sealed->segment, view.id);
    EXPECT_EQ(sealed->name, "weights");
    told.insert(session);
  }
  EXPECT_EQ(told, (std::set<SessionId>{alice, other}));
}

TEST_F(DeviceBrokerTurnsTest, ListsLeasesInPagesOrderedByBlock) {
  LedgerOptions options;
  options.admission.pools = PoolsFor("device_local=1mib", SimulatedDeviceInfo());
  Start(MiB(100), SimulatedDeviceInfo(), options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, KiB(1000)));
  clock_.Advance(absl::Seconds(7));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock second, Allocate(bob, MiB(2)));
  ASSERT_OK_AND_ASSIGN(const GrantedBlock third, Allocate(alice, KiB(64)));
  const std::vector<LeaseStats> page = broker_->ListLeases(BlockId(), 2);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].block, first.id);
  EXPECT_EQ(page[0].session, alice);
  EXPECT_EQ(page[0].tenant, kAlice);
  EXPECT_EQ(page[0].size, KiB(1000));
  EXPECT_EQ(page[0].allocated, KiB(1024));
  EXPECT_EQ(page[0].pool, "device_local (type 0)");
  EXPECT_EQ(page[0].since, clock_.Now() - absl::Seconds(7));
  EXPECT_EQ(page[1].block, second.id);
  EXPECT_EQ(page[1].pool, "direct");
  const std::vector<LeaseStats> rest = broker_->ListLeases(page[1].block, 2);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].block, third.id);
  ASSERT_THAT(Release(bob, second.id), IsOk());
  EXPECT_EQ(broker_->ListLeases(BlockId(), 10).size(), 2u);
}

TEST_F(DeviceBrokerTurnsTest, TheAlarmIsSetOnlyWhereSomethingIsDue) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
  EXPECT_EQ(alarm_.TakeTime(), absl::InfiniteFuture());
  ASSERT_THAT(Release(alice, block.id), IsOk());
  EXPECT_EQ(alarm_.TakeTime(), clock_.Now() + absl::Minutes(10));
  AdvanceAndTick(absl::Minutes(10));
  EXPECT_EQ(alarm_.TakeTime(), absl::InfiniteFuture());
}

TEST_F(DeviceBrokerTurnsTest, ATickBeforeItsTimeSetsTheAlarmAgain) {
  Start(MiB(100));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(1)));
  ASSERT_THAT(Release(alice, block.id), IsOk());
  const absl::Time due = alarm_.TakeTime();
  AdvanceAndTick(absl::Minutes(1));
  EXPECT_EQ(alarm_.TakeTime(), due);
  EXPECT_EQ(Pool().idle_blocks, 1u);
}

}  // namespace
}  // namespace heapbroker

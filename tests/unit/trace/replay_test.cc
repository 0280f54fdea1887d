// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/trace/header_message.h"
#include "daemon/trace/replayer.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class ReplayTest : public ::testing::Test {
 protected:
  ReplayResult ReplayOf(const TracedDevice& device, const TracedBroker& broker,
                        const std::vector<ReplayConfiguration>& configurations = {}) {
    const std::string path = dir_.File(absl::StrCat("trace", ++files_));
    WriteTrace(path, StartOf({device}), broker.turns(), {broker.Stats()});
    const auto result = Replay(path, configurations);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *result : ReplayResult();
  }

  static ReplayConfiguration With(const TracedDevice& device, const std::string& name,
                                  const PoolLimits& limits) {
    ReplayConfiguration configuration{name, {device.options}};
    configuration.devices[0].admission.pools = {{name, 0, true, false, limits}};
    return configuration;
  }

  static void RunOnce(TracedBroker& broker, SessionId session, Bytes size) {
    const CallId call = broker.Allocate(session, {size});
    broker.RunAll();
    broker.Advance(absl::Milliseconds(10));
    broker.Release(session, broker.Answer(call)->blocks);
    broker.RunAll();
    broker.Advance(absl::Milliseconds(10));
  }

  TempDir dir_;
  int files_ = 0;
};

TEST_F(ReplayTest, TheRecordedConfigurationGivesTheRecordedStatistics) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const TracedDevice device = TracedDeviceOf(MiB(100));
    TracedBroker broker(device);
    if (seed % 2 == 0) broker.device().PadSizes(KiB(64), Bytes(64));
    LiveAtRandom(broker, seed, 2000);
    const ReplayResult result = ReplayOf(device, broker);
    EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
    EXPECT_EQ(result.turns, broker.turns().size());
    EXPECT_EQ(result.configurations[0].devices[0].figures.peak,
              broker.device().counts().peak_bytes);
    EXPECT_EQ(result.configurations[0].devices[0].figures.allocations,
              broker.device().counts().allocations);
  }
}

TEST_F(ReplayTest, ARecordedFailureOfTheDeviceHappensAgain) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  broker.device().FailAllocations(absl::UnavailableError("lost"), 1);
  const CallId call = broker.Allocate(SessionId(1), {MiB(1), MiB(2)});
  broker.RunAll();
  ASSERT_EQ(broker.Answer(call)->code, StatusCode::kUnavailable);
  RunOnce(broker, SessionId(1), MiB(3));
  const ReplayResult result = ReplayOf(device, broker);
  EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
}

TEST_F(ReplayTest, ASizeThatTheDeviceHasNoBufferForIsNotTakenForTheNext) {
  TracedDevice device = TracedDeviceOf(MiB(100));
  device.info.max_allocation_size = MiB(36);
  TracedBroker broker(device);
  broker.device().PadSizes(Bytes(1), Bytes(64));
  broker.AddSession(SessionId(1), kAlice);
  const CallId call = broker.Allocate(SessionId(1), {MiB(33)});
  broker.RunAll();
  ASSERT_EQ(broker.Answer(call)->code, StatusCode::kOk);
  const ReplayResult result = ReplayOf(device, broker);
  EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
}

TEST_F(ReplayTest, TheClearThatFailedFailsAgain) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  const CallId call = broker.Allocate(SessionId(1), {MiB(1), MiB(2), MiB(40)});
  broker.RunAll();
  broker.Release(SessionId(1), broker.Answer(call)->blocks);
  // The first is cleared, the second is not, and the third, rounded up, was refused.
  broker.device().FailAllocations(absl::ResourceExhaustedError("too large"), 1);
  broker.device().FailClears(absl::InternalError("fence"), 1, /*after=*/1);
  const CallId zeroed = broker.AllocateZeroed(SessionId(1), {MiB(33), MiB(1), MiB(2)});
  broker.RunAll();
  ASSERT_EQ(broker.Answer(zeroed)->code, StatusCode::kInternal);
  const ReplayResult result = ReplayOf(device, broker);
  EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
}

TEST_F(ReplayTest, AskingTheDriverAgainIsNotTakenForARecordedAllocation) {
  TracedDevice device = TracedDeviceOf(MiB(100));
  device.options.admission.heaps = {HeapLimit{MiB(100), 1000}};
  TracedBroker broker(device);
  broker.device().ReportHeaps({{MiB(10), MiB(1)}});
  broker.AddSession(SessionId(1), kAlice);
  RunOnce(broker, SessionId(1), MiB(1));
  const CallId waits = broker.Allocate(SessionId(1), {MiB(50)});
  broker.RunAll();
  ASSERT_EQ(broker.Answer(waits), nullptr);
  broker.device().ReportHeaps({{MiB(100), MiB(1)}});
  for (int i = 0; i < 3 && broker.Answer(waits) == nullptr; ++i) {
    broker.Advance(absl::Seconds(1));
    broker.RunAll();
  }
  ASSERT_NE(broker.Answer(waits), nullptr);
  const ReplayResult result = ReplayOf(device, broker);
  EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
}

// Names are hashed in a recording, so that they sort otherwise there.
TEST_F(ReplayTest, SegmentsThatASessionLeavesGoInTheSameOrderWhateverTheirNames) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  broker.AddSession(SessionId(2), kAlice);
  uint64_t size = 6;
  for (const char* name : {"f", "c", "a", "e", "b", "d"}) {
    const CallId call = broker.OpenSegment(SessionId(1), name, MiB(size));
    size += 4;
    broker.RunAll();
    broker.Seal(SessionId(1), broker.Answer(call)->segment);
  }
  broker.EndSession(SessionId(1));
  // Some of them have to go for it.
  broker.Allocate(SessionId(2), {MiB(50)});
  broker.RunAll();
  const ReplayResult result = ReplayOf(device, broker);
  EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
}

TEST_F(ReplayTest, OtherStatisticsThanRecordedAreToldOf) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  RunOnce(broker, SessionId(1), MiB(1));
  DeviceStats forged = broker.Stats();
  ++forged.pools[0].hits;
  WriteTrace(dir_.File("forged"), StartOf({device}), broker.turns(), {forged});
  ASSERT_OK_AND_ASSIGN(const ReplayResult result, Replay(dir_.File("forged"), {}));
  EXPECT_FALSE(result.exact);
  EXPECT_THAT(result.notes, testing::ElementsAre(testing::HasSubstr("hits")));
}

TEST_F(ReplayTest, AMissingTurnIsToldOf) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  LiveAtRandom(broker, 3, 300);
  for (size_t missing = 1; missing + 1 < broker.turns().size(); missing += 7) {
    std::vector<TracedTurn> turns = broker.turns();
    turns.erase(turns.begin() + static_cast<std::ptrdiff_t>(missing));
    const std::string path = dir_.File(absl::StrCat("missing", missing));
    WriteTrace(path, StartOf({device}), turns, {broker.Stats()});
    ASSERT_OK_AND_ASSIGN(const ReplayResult result, Replay(path, {}));
    EXPECT_FALSE(result.exact);
    EXPECT_THAT(result.notes, testing::ElementsAre(testing::HasSubstr("incomplete")));
  }
}

TEST_F(ReplayTest, APoolThatKeepsNothingHitsNothing) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  for (int i = 0; i < 10; ++i) RunOnce(broker, SessionId(1), MiB(4));
  PoolLimits nothing;
  nothing.max_free_allocation_count = 0;
  const ReplayResult result = ReplayOf(device, broker, {With(device, "nothing", nothing)});
  ASSERT_EQ(result.configurations.size(), 2u);
  const ReplayFigures& recorded = result.configurations[0].devices[0].figures;
  EXPECT_EQ(recorded.granted_blocks, 10u);
  EXPECT_EQ(recorded.hits, 9u);
  EXPECT_EQ(recorded.allocations, 1u);
  const ReplayFigures& without = result.configurations[1].devices[0].figures;
  EXPECT_EQ(without.granted_blocks, 10u);
  EXPECT_EQ(without.hits, 0u);
  EXPECT_EQ(without.allocations, 10u);
  EXPECT_EQ(without.frees, 10u);
  EXPECT_EQ(without.peak, MiB(4));
}

TEST_F(ReplayTest, TheTimeSavedIsThatOfTheCallsThatWereNotMade) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  for (int i = 0; i < 11; ++i) RunOnce(broker, SessionId(1), MiB(4));
  PoolLimits nothing;
  nothing.max_free_allocation_count = 0;
  const ReplayResult result = ReplayOf(device, broker, {With(device, "nothing", nothing)});
  // Ten allocations of 50 us.
  ASSERT_TRUE(result.configurations[0].devices[0].saved.has_value());
  EXPECT_NEAR(absl::ToDoubleMicroseconds(*result.configurations[0].devices[0].saved), 500, 0.1);
  EXPECT_NEAR(absl::ToDoubleMicroseconds(*result.configurations[1].devices[0].saved), 0, 0.1);
}

TEST_F(ReplayTest, ShowsWhatRoundingCosts) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  const CallId call = broker.Allocate(SessionId(1), {MiB(8) + Bytes(1), MiB(8) + Bytes(1)});
  broker.RunAll();
  broker.Release(SessionId(1), broker.Answer(call)->blocks);
  ReplayConfiguration exact{"exact", {device.options}};
  exact.devices[0].admission.matching.matching = Matching::kExact;
  const ReplayResult result = ReplayOf(device, broker, {exact});
  EXPECT_EQ(result.configurations[0].devices[0].figures.peak_rounding, MiB(2) - Bytes(2));
  EXPECT_EQ(result.configurations[1].devices[0].figures.peak_rounding, Bytes());
}

TEST_F(ReplayTest, WhatTheReplayDidNotGetIsNotGivenBack) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  const CallId large = broker.Allocate(SessionId(1), {MiB(60)});
  broker.RunAll();
  const CallId small = broker.Allocate(SessionId(1), {MiB(20)});
  broker.RunAll();
  broker.Release(SessionId(1), broker.Answer(large)->blocks);
  broker.Release(SessionId(1), broker.Answer(small)->blocks);
  ReplayConfiguration tight{"tight", {device.options}};
  tight.devices[0].admission.heaps[0].bytes = MiB(30);
  const ReplayResult result = ReplayOf(device, broker, {tight});
  const ReplayFigures& figures = result.configurations[1].devices[0].figures;
  EXPECT_EQ(figures.refusals, 1u);
  EXPECT_EQ(figures.granted_blocks, 1u);
  EXPECT_EQ(figures.peak, MiB(20));
}

TEST_F(ReplayTest, WhatOnlyTheReplayGotIsGivenBackAtOnce) {
  const TracedDevice device = TracedDeviceOf(MiB(30));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  for (int i = 0; i < 20; ++i) {
    const CallId call = broker.Allocate(SessionId(1), {MiB(60)});
    ASSERT_EQ(broker.Answer(call)->code, StatusCode::kResourceExhausted);
    broker.Advance(absl::Seconds(1));
  }
  ReplayConfiguration roomy{"roomy", {device.options}};
  roomy.devices[0].admission.heaps[0].bytes = MiB(200);
  const ReplayResult result = ReplayOf(device, broker, {roomy});
  EXPECT_LE(result.configurations[1].devices[0].figures.peak, MiB(64));
  EXPECT_EQ(result.configurations[0].devices[0].figures.refusals, 20u);
  EXPECT_EQ(result.configurations[1].devices[0].figures.refusals, 0u);
}

TEST_F(ReplayTest, AnyConfigurationEndsWithItsSumsInOrder) {
  for (uint32_t seed = 100; seed < 108; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const TracedDevice device = TracedDeviceOf(MiB(100));
    TracedBroker broker(device);
    LiveAtRandom(broker, seed, 1500);
    SizeModel sizes;
    TimeModel times;
    LedgerOptions other = device.options;
    other.admission.matching.matching = Matching::kExact;
    other.admission.heaps[0].bytes = MiB(40 + seed % 4 * 40);
    DeviceReplay replay(device.info, other, Fidelity::kEstimate, sizes, times);
    for (const TracedTurn& turn : broker.turns()) replay.Apply(turn.turn);
    const DeviceStats stats = replay.Stats();
    Bytes total;
    for (const PoolStats& pool : stats.pools) {
      total += pool.total();
      EXPECT_EQ(pool.requests, pool.hits + pool.total_misses());
    }
    EXPECT_EQ(total, stats.heaps[0].in_use);
    EXPECT_LE(replay.Figures().peak, other.admission.heaps[0].bytes);
    EXPECT_FALSE(replay.difference().has_value());
  }
}

TEST_F(ReplayTest, AConfigurationForOtherDevicesIsRefused) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  WriteTrace(dir_.File("trace"), StartOf({device}), {}, {});
  EXPECT_THAT(Replay(dir_.File("trace"), {ReplayConfiguration{"two", {{}, {}}}}),
              StatusIs(StatusCode::kInvalidArgument, "2 devices"));
}

TEST_F(ReplayTest, TheTableHasALineForEachConfiguration) {
  const TracedDevice device = TracedDeviceOf(MiB(100));
  TracedBroker broker(device);
  broker.AddSession(SessionId(1), kAlice);
  for (int i = 0; i < 4; ++i) RunOnce(broker, SessionId(1), MiB(4));
  PoolLimits nothing;
  nothing.max_free_allocation_count = 0;
  const std::string text =
      RenderReplay(ReplayOf(device, broker, {With(device, "keeps nothing", nothing)}));
  EXPECT_THAT(text, testing::ContainsRegex("recorded +4 +3 +75.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("keeps nothing +4 +0 +0.0 %"));
  EXPECT_THAT(text, testing::HasSubstr("exactly the recorded statistics"));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/recorder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "daemon/trace/trace_reader.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class RecorderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Recorder> Start(RecorderOptions options = {}) {
    auto recorder = Recorder::Start(path_, start_, options, [this](std::string warning) {
      warnings_.push_back(std::move(warning));
    });
    EXPECT_THAT(recorder, IsOk());
    return recorder.ok() ? *std::move(recorder) : nullptr;
  }

  // How many turns are in the file; the reader is left at its end.
  uint64_t CountTurns() {
    auto reader = TraceReader::Open(path_);
    EXPECT_THAT(reader, IsOk());
    uint64_t count = 0;
    while (true) {
      const auto turn = (*reader)->Next();
      EXPECT_THAT(turn, IsOk());
      if (!turn.ok() || !*turn) break;
      ++count;
    }
    end_ = (*reader)->end();
    return count;
  }

  static RecordedTurn TurnOf(uint64_t sequence) {
    return {sequence, FakeClock().Now(), SessionEnded{SessionId(sequence)}};
  }

  TempDir dir_;
  const std::string path_ = dir_.File("trace");
  const TraceStart start_ = StartOf({TracedDeviceOf(MiB(100))});
  std::vector<std::string> warnings_;
  TraceEnd end_;
};

TEST_F(RecorderTest, TheFileIsItsOwnersOnly) {
  const mode_t mask = umask(0);
  Start();
  umask(mask);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(RecorderTest, NeverWritesOverAnything) {
  WriteFile(path_, "precious");
  EXPECT_THAT(Recorder::Start(path_, start_, {}, [](const std::string&) {}),
              StatusIs(StatusCode::kFailedPrecondition, "name another file"));
  EXPECT_EQ(ReadFile(path_), "precious");
}

TEST_F(RecorderTest, FollowsNoLink) {
  const std::string target = dir_.File("target");
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  EXPECT_THAT(Recorder::Start(path_, start_, {}, [](const std::string&) {}),
              StatusIs(StatusCode::kFailedPrecondition, path_));
  EXPECT_NE(access(target.c_str(), F_OK), 0);
}

TEST_F(RecorderTest, WritesWhatSeveralThreadsTellIt) {
  const auto recorder = Start();
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&recorder, thread] {
      for (uint64_t i = 0; i < 500; ++i) recorder->Record(0, TurnOf(1 + i * 4 + thread));
    });
  }
  for (std::thread& thread : threads) thread.join();
  recorder->Finish({});
  EXPECT_EQ(CountTurns(), 2000u);
  EXPECT_EQ(end_.missing, 0u);
  ASSERT_TRUE(end_.footer.has_value());
  EXPECT_FALSE(end_.footer->truncated());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(RecorderTest, EndsAtItsLimitAndSaysSo) {
  const auto recorder = Start({KiB(1), MiB(1)});
  for (uint64_t i = 1; i <= 1000; ++i) recorder->Record(0, TurnOf(i));
  recorder->Finish({});
  EXPECT_LE(ReadFile(path_).size(), 1024u + 64u);
  const uint64_t turns = CountTurns();
  EXPECT_GT(turns, 10u);
  EXPECT_LT(turns, 1000u);
  ASSERT_TRUE(end_.footer.has_value());
  EXPECT_TRUE(end_.footer->truncated());
  EXPECT_EQ(end_.footer->stats_size(), 0);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(RecorderTest, CountsWhatItHadNoMemoryFor) {
  const auto recorder = Start({MiB(1), Bytes(0)});
  for (uint64_t i = 1; i <= 10; ++i) recorder->Record(0, TurnOf(i));
  recorder->Finish({});
  EXPECT_EQ(CountTurns(), 0u);
  ASSERT_TRUE(end_.footer.has_value());
  EXPECT_EQ(end_.footer->lost_turns(), 10u);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(RecorderTest, ADaemonThatIsKilledLeavesARecordingWithoutAnEnd) {
  const auto recorder = Start();
  recorder->Record(0, TurnOf(1));
  recorder->Finish({});
  const std::string whole = ReadFile(path_);
  WriteFile(path_, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(CountTurns(), 1u);
  EXPECT_FALSE(end_.footer.has_value());
}

TEST_F(RecorderTest, KeepsTheStatisticsOfTheEnd) {
  TracedBroker broker(start_.devices[0]);
  broker.AddSession(SessionId(1), kAlice);
  broker.Allocate(SessionId(1), {MiB(1)});
  broker.RunAll();
  const std::vector<DeviceStats> stats = {broker.Stats()};
  const auto recorder = Start();
  for (const TracedTurn& turn : broker.turns()) recorder->Record(0, turn.turn);
  recorder->Finish(stats);
  recorder->Finish({});  // Changes nothing.
  CountTurns();
  ASSERT_TRUE(end_.footer.has_value());
  ASSERT_EQ(end_.footer->stats_size(), 1);
  EXPECT_EQ(end_.footer->stats(0).pools(0).leased(), MiB(1).count());
}

TEST_F(RecorderTest, AHeaderThatDoesNotFitTheLimitIsRefused) {
  EXPECT_THAT(Recorder::Start(path_, start_, {Bytes(20), MiB(1)}, [](const std::string&) {}),
              StatusIs(StatusCode::kInvalidArgument, "limit"));
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace heapbroker

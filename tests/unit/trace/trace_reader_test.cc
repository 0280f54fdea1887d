// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/trace_reader.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class TraceReaderTest : public ::testing::Test {
 protected:
  static TracedTurn TurnOf(uint32_t device, uint64_t sequence) {
    return {device, {sequence, FakeClock().Now(), Ticked{}}};
  }

  // The sequence numbers of device 0 in the order in which they are read.
  std::vector<uint64_t> Read() {
    std::vector<uint64_t> read;
    const auto reader = TraceReader::Open(path_);
    EXPECT_THAT(reader, IsOk());
    while (true) {
      const auto turn = (*reader)->Next();
      EXPECT_THAT(turn, IsOk());
      if (!turn.ok() || !*turn) break;
      if ((*turn)->device == 0) read.push_back((*turn)->turn.sequence);
    }
    missing_ = (*reader)->end().missing;
    return read;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("trace");
  const TraceStart start_ = StartOf({TracedDeviceOf(MiB(100)), TracedDeviceOf(MiB(100))});
  uint64_t missing_ = 0;
};

TEST_F(TraceReaderTest, GivesTheTurnsOfEachDeviceInTheirOrder) {
  std::vector<TracedTurn> turns;
  for (uint64_t i = 1; i <= 500; ++i) {
    turns.push_back(TurnOf(0, i));
    turns.push_back(TurnOf(1, i));
  }
  std::shuffle(turns.begin(), turns.end(), std::mt19937(1));
  WriteTrace(path_, start_, turns, {});
  const std::vector<uint64_t> read = Read();
  EXPECT_EQ(read.size(), 500u);
  EXPECT_TRUE(std::is_sorted(read.begin(), read.end()));
  EXPECT_EQ(missing_, 0u);
}

TEST_F(TraceReaderTest, CountsTheTurnsThatAreMissing) {
  WriteTrace(path_, start_, {TurnOf(0, 1), TurnOf(0, 2), TurnOf(0, 7)}, {});
  EXPECT_EQ(Read(), (std::vector<uint64_t>{1, 2, 7}));
  EXPECT_EQ(missing_, 4u);
}

TEST_F(TraceReaderTest, ATurnThatIsThereTwiceIsGivenOnce) {
  WriteTrace(path_, start_, {TurnOf(0, 1), TurnOf(0, 2), TurnOf(0, 2), TurnOf(0, 3)}, {});
  EXPECT_EQ(Read(), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(TraceReaderTest, ForeignFilesAreNoRecordings) {
  EXPECT_THAT(TraceReader::Open(path_), StatusIs(StatusCode::kNotFound, path_));
  EXPECT_THAT(TraceReader::Open(dir_.path()), StatusIs(StatusCode::kInvalidArgument, "recording"));
  for (const char* text : {"", "HB", "#!/bin/sh\necho hello\n", "HBTRACE"}) {
    WriteFile(path_, text);
    EXPECT_THAT(TraceReader::Open(path_), StatusIs(StatusCode::kInvalidArgument, "recording"));
  }
  EXPECT_THAT(TraceReader::Open("/dev/zero"), StatusIs(StatusCode::kInvalidArgument, "recording"));
}

TEST_F(TraceReaderTest, ARecordThatSaysThatItIsHugeIsNotBelieved) {
  // 256 MiB - 1, and more than 2^28.
  for (const char* length : {"\xff\xff\xff\x7f", "\xff\xff\xff\xff\x7f"}) {
    WriteFile(path_, std::string("HBTRACE\n") + length);
    EXPECT_THAT(TraceReader::Open(path_), StatusIs(StatusCode::kDataLoss, "at byte 8"));
  }
}

TEST_F(TraceReaderTest, ATurnOfADeviceThatIsNotThereIsDamage) {
  WriteTrace(path_, start_, {TurnOf(2, 1)}, {});
  const auto reader = TraceReader::Open(path_);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT((*reader)->Next(), StatusIs(StatusCode::kDataLoss, "device 2"));
}

}  // namespace
}  // namespace heapbroker

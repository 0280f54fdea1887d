// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A recording is a file, and files come from anywhere.
#include <string>
#include <vector>

#include "daemon/trace/replayer.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class DamagedTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const TracedDevice device = TracedDeviceOf(MiB(60));
    TracedBroker broker(device);
    LiveAtRandom(broker, 7, 30);
    WriteTrace(dir_.File("whole"), StartOf({device}), broker.turns(), {broker.Stats()});
    bytes_ = ReadFile(dir_.File("whole"));
    another_.name = "another";
    another_.devices = {device.options};
    another_.devices[0].admission.matching.matching = Matching::kExact;
  }

  absl::StatusOr<ReplayResult> ReplayOf(const std::string& bytes) {
    WriteFile(dir_.File("damaged"), bytes);
    return Replay(dir_.File("damaged"), {another_});
  }

  TempDir dir_;
  std::string bytes_;
  ReplayConfiguration another_;
};

TEST_F(DamagedTraceTest, CutAnywhereItIsReplayedUntilThereOrRefused) {
  ASSERT_TRUE(ReplayOf(bytes_)->exact);
  bool header_was_complete = false;
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const auto result = ReplayOf(bytes_.substr(0, size));
    if (!result.ok()) {
      EXPECT_FALSE(header_was_complete) << size << ": " << result.status();
      EXPECT_TRUE(absl::IsDataLoss(result.status()) || absl::IsInvalidArgument(result.status()))
          << result.status();
      continue;
    }
    header_was_complete = true;
    EXPECT_FALSE(result->exact) << size;
    EXPECT_FALSE(result->notes.empty()) << size;
  }
  EXPECT_TRUE(header_was_complete);
}

TEST_F(DamagedTraceTest, AnyByteMayBeAnother) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    for (const int change : {0x01, 0xff}) {
      std::string damaged = bytes_;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const auto result = ReplayOf(damaged);
      // The beginning of the file says what it is.
      if (at < 8) {
        EXPECT_THAT(result, StatusIs(StatusCode::kInvalidArgument, "recording"));
      }
      if (result.ok()) {
        EXPECT_LE(result->turns, 1000u);
      } else {
        EXPECT_FALSE(result.status().message().empty());
      }
    }
  }
}

}  // namespace
}  // namespace heapbroker

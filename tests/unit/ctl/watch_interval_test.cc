// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/watch_interval.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

TEST(WatchIntervalTest, ReadsUnitsAndTakesNumbersForSeconds) {
  EXPECT_EQ(ParseWatchInterval("500ms").value(), absl::Milliseconds(500));
  EXPECT_EQ(ParseWatchInterval("2.5s").value(), absl::Milliseconds(2500));
  EXPECT_EQ(ParseWatchInterval("1m30s").value(), absl::Seconds(90));
  EXPECT_EQ(ParseWatchInterval("2").value(), absl::Seconds(2));
  EXPECT_EQ(ParseWatchInterval("0.5").value(), absl::Milliseconds(500));
}

TEST(WatchIntervalTest, HasTheLimitsOfTheProtocol) {
  EXPECT_EQ(ParseWatchInterval("100ms").value(), kMinWatchInterval);
  EXPECT_EQ(ParseWatchInterval("1h").value(), kMaxWatchInterval);
  for (const char* text : {"99ms", "0", "-1s", "3601", "inf", "2h"}) {
    EXPECT_THAT(ParseWatchInterval(text),
                StatusIs(absl::StatusCode::kInvalidArgument, "100ms to 1h"))
        << text;
  }
}

TEST(WatchIntervalTest, WhatIsNoIntervalIsQuoted) {
  for (const char* text : {"", "s", "soon", "1x", "1 s"}) {
    EXPECT_THAT(ParseWatchInterval(text),
                StatusIs(absl::StatusCode::kInvalidArgument, std::string("\"") + text + "\""))
        << text;
  }
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/duration.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

TEST(DurationTest, ReadsTheSpellingsOfGoAndOfSystemd) {
  const std::pair<const char*, absl::Duration> cases[] = {
      {"10min", absl::Minutes(10)},       {"90s", absl::Seconds(90)},
      {"500ms", absl::Milliseconds(500)}, {"5sec", absl::Seconds(5)},
      {"1h30m", absl::Minutes(90)},       {"1h 30min", absl::Minutes(90)},
      {" 2 d ", absl::Hours(48)},         {"0", absl::ZeroDuration()},
      {"0s", absl::ZeroDuration()},
  };
  for (const auto& [text, expected] : cases) {
    ASSERT_OK_AND_ASSIGN(const absl::Duration duration, ParseDurationOption(text));
    EXPECT_EQ(duration, expected) << text;
  }
}

TEST(DurationTest, AnythingElseSaysWhereAndWhatIsAllowed) {
  EXPECT_THAT(ParseDurationOption(""), StatusIs(StatusCode::kInvalidArgument, "as in 10min"));
  EXPECT_THAT(ParseDurationOption("10"), StatusIs(StatusCode::kInvalidArgument, "ms, s, sec"));
  EXPECT_THAT(ParseDurationOption("10 fortnights"), StatusIs(StatusCode::kInvalidArgument, "3"));
  EXPECT_THAT(ParseDurationOption("1.5h"), StatusIs(StatusCode::kInvalidArgument, "1"));
  EXPECT_THAT(ParseDurationOption("-1s"), StatusIs(StatusCode::kInvalidArgument, "whole number"));
  EXPECT_THAT(ParseDurationOption("never"), StatusIs(StatusCode::kInvalidArgument, "10min"));
  EXPECT_THAT(ParseDurationOption("9223372036854775807h"),
              StatusIs(StatusCode::kInvalidArgument, "100 years"));
  EXPECT_THAT(ParseDurationOption("99999999999999999999s"),
              StatusIs(StatusCode::kInvalidArgument, "whole number"));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/backoff.h"

#include <limits>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

TEST(BackoffTest, DoublesUpToTheLimit) {
  Backoff backoff({.initial_delay = kSecond, .max_delay = 5 * kSecond, .jitter = 0.5});
  EXPECT_EQ(backoff.Next(0), kSecond);
  EXPECT_EQ(backoff.Next(0), 2 * kSecond);
  EXPECT_EQ(backoff.Next(0), 4 * kSecond);
  EXPECT_EQ(backoff.Next(0), 5 * kSecond);
  EXPECT_EQ(backoff.Next(0), 5 * kSecond);
}

TEST(BackoffTest, ChanceTakesAwayAtMostItsPart) {
  Backoff some({.initial_delay = kSecond, .max_delay = kSecond, .jitter = 0.25});
  EXPECT_EQ(some.Next(0), kSecond);
  EXPECT_EQ(some.Next(0.5), 0.875 * kSecond);
  EXPECT_GT(some.Next(0.999), 0.75 * kSecond);
  Backoff none({.initial_delay = kSecond, .max_delay = kSecond, .jitter = 0});
  EXPECT_EQ(none.Next(0.999), kSecond);
}

TEST(BackoffTest, ASessionPutsItBackOnceItHasLastedAsLongAsTheLimit) {
  Backoff backoff({.initial_delay = kSecond, .max_delay = 5 * kSecond});
  backoff.Next(0);
  backoff.SessionLasted(4.9 * kSecond);
  EXPECT_EQ(backoff.Next(0), 2 * kSecond);
  backoff.SessionLasted(5 * kSecond);
  EXPECT_EQ(backoff.Next(0), kSecond);
}

TEST(BackoffTest, OptionsAreChecked) {
  EXPECT_THAT(CheckReconnectOptions({}), IsOk());
  EXPECT_THAT(CheckReconnectOptions({.max_delay = absl::InfiniteDuration(), .jitter = 1}), IsOk());
  EXPECT_THAT(CheckReconnectOptions({.jitter = std::numeric_limits<double>::quiet_NaN()}),
              StatusIs(absl::StatusCode::kInvalidArgument, "jitter"));
  EXPECT_THAT(CheckReconnectOptions({.jitter = -0.1}),
              StatusIs(absl::StatusCode::kInvalidArgument, "from 0 to 1"));
}

}  // namespace
}  // namespace heapbroker

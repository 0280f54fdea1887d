// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/rate_limit.h"

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

int TakeAll(RateLimit& limit, absl::Time now) {
  int taken = 0;
  while (taken < 1000 && limit.Take(now)) ++taken;
  return taken;
}

TEST(RateLimitTest, TakesABurstAndThenOneForEachInterval) {
  RateLimit limit(10, absl::Milliseconds(100));
  EXPECT_EQ(TakeAll(limit, kStart), 10);
  EXPECT_EQ(TakeAll(limit, kStart + absl::Milliseconds(99)), 0);
  EXPECT_EQ(TakeAll(limit, kStart + absl::Milliseconds(100)), 1);
  EXPECT_EQ(TakeAll(limit, kStart + absl::Milliseconds(400)), 3);
}

TEST(RateLimitTest, NeverHasMoreThanABurst) {
  RateLimit limit(10, absl::Milliseconds(100));
  EXPECT_EQ(TakeAll(limit, kStart), 10);
  EXPECT_EQ(TakeAll(limit, kStart + absl::Hours(1)), 10);
}

TEST(RateLimitTest, AClockThatIsSetBackCostsNoMoreThanABurst) {
  RateLimit limit(10, absl::Milliseconds(100));
  EXPECT_EQ(TakeAll(limit, kStart), 10);
  EXPECT_EQ(TakeAll(limit, kStart - absl::Hours(1)), 0);
  EXPECT_EQ(TakeAll(limit, kStart - absl::Hours(1) + absl::Seconds(1)), 10);
}

}  // namespace
}  // namespace heapbroker

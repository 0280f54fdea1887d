// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/spread.h"

#include <random>

#include "gtest/gtest.h"
#include "tests/benchmark/tick_clock.h"

namespace heapbroker {
namespace {

TEST(GroupedPercentileTest, OfAFineScaleIsTheValueItself) {
  std::vector<uint32_t> values;
  for (uint32_t value = 1; value <= 1000; ++value) values.push_back(value);
  EXPECT_NEAR(GroupedPercentile(values, 0.5, 1), 500, 1);
  EXPECT_NEAR(GroupedPercentile(values, 0.99, 1), 990, 1);
  EXPECT_NEAR(GroupedPercentile(values, 1, 1), 1000, 1);
}

TEST(GroupedPercentileTest, IsFinerThanACoarseScale) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> phase(0, 25);
  for (const double time : {40.0, 45.0, 52.0, 60.0}) {
    std::vector<uint32_t> values;
    for (int i = 0; i < 100'000; ++i) {
      // As a counter shows it that goes on by 25 at once.
      const double begin = phase(random);
      values.push_back(static_cast<uint32_t>((begin + time) / 25) * 25);
    }
    EXPECT_NEAR(GroupedPercentile(values, 0.5, 25), time, 4) << time;
  }
}

TEST(SpreadTest, LeavesOutWhatTheClockTakes) {
  std::vector<uint32_t> ticks;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t begin = Ticks();
    ticks.push_back(static_cast<uint32_t>(Ticks() - begin));
  }
  // Nothing was timed, so what is left is far below one call of the clock.
  EXPECT_LT(SpreadOf(ticks).p50, GroupedPercentile(ticks, 0.5, 1) * NanosecondsPerTick() / 2);
}

}  // namespace
}  // namespace heapbroker

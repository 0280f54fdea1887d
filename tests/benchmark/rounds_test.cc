// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/rounds.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Takes 1, 2, 3, ... times `step`, and writes its letter down.
Case Growing(char letter, absl::Duration step, std::string& calls) {
  return {std::string(1, letter), [letter, step, &calls, count = 0]() mutable {
            calls += letter;
            return absl::StatusOr<absl::Duration>(++count * step);
          }};
}

TEST(MedianTest, IsTheMiddleValueWhateverTheOrder) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 3}), 4);
}

TEST(MeasureTest, LeavesTheFirstSliceOutAndTakesEachRoundsMedian) {
  std::string calls;
  const auto p50s =
      Measure({Growing('a', absl::Nanoseconds(10), calls)}, {.rounds = 2, .calls = 3, .slice = 3});
  ASSERT_THAT(p50s, IsOk());
  // Calls 1 to 3 do not count; the rounds have 4 to 6 and 7 to 9.
  EXPECT_THAT(*p50s, ElementsAre(ElementsAre(50, 80)));
}

TEST(MeasureTest, NoCaseRunsAheadOfTheOthersByMoreThanASlice) {
  std::string calls;
  const auto p50s = Measure(
      {Growing('a', absl::Nanoseconds(1), calls), Growing('b', absl::Nanoseconds(1), calls)},
      {.rounds = 3, .calls = 40, .slice = 4});
  ASSERT_THAT(p50s, IsOk());
  ASSERT_EQ(calls.size(), 2u * (4 + 3 * 40));
  int ahead = 0;
  for (const char letter : calls) {
    ahead += letter == 'a' ? 1 : -1;
    EXPECT_LE(std::abs(ahead), 4);
  }
}

TEST(MeasureTest, EndsWithTheErrorOfACallAndTheCasesName) {
  const auto p50s = Measure({{"broken", [] { return absl::UnavailableError("gone"); }}}, {});
  EXPECT_EQ(p50s.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(p50s.status().message()), HasSubstr("broken"));
}

TEST(TimeOfTest, PassesTheErrorOn) {
  EXPECT_THAT(TimeOf([] { return absl::OkStatus(); }), IsOk());
  EXPECT_EQ(TimeOf([] { return absl::InternalError("no"); }).status().code(),
            absl::StatusCode::kInternal);
}

TEST(CompareTest, TakesTheRatioInsideEachRound) {
  // The second round was on a machine half as fast; the ratio does not show it.
  const Comparison comparison = Compare({110, 240, 130}, {100, 200, 100});
  EXPECT_EQ(comparison.p50, 130);
  EXPECT_DOUBLE_EQ(comparison.ratio, 1.2);
  EXPECT_DOUBLE_EQ(comparison.lowest_ratio, 1.1);
  EXPECT_DOUBLE_EQ(comparison.highest_ratio, 1.3);
}

}  // namespace
}  // namespace heapbroker

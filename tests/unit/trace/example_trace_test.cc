// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The recording that is in the repository as an example.
#include "daemon/trace/replayer.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr char kExample[] = HEAPBROKER_EXAMPLE_TRACE;

TEST(ExampleTraceTest, IsReplayedAndSaysHowItWasMade) {
  ASSERT_OK_AND_ASSIGN(const ReplayResult result, Replay(kExample, {}));
  EXPECT_THAT(result.start.comment, testing::HasSubstr("make_example_trace"));
  const ReplayFigures& figures = result.configurations[0].devices[0].figures;
  // Forty processes, with six requests each beside at least six other allocations.
  EXPECT_GE(figures.granted_blocks, 40u * 12);
  EXPECT_EQ(figures.refusals, 0u);
  EXPECT_GT(figures.hits, figures.granted_blocks / 2);
  EXPECT_TRUE(result.configurations[0].devices[0].saved.has_value());
}

// Programs ask for the same sizes in every run: rounding brings them nothing.
TEST(ExampleTraceTest, ShowsWhatRoundingCostsWhereSizesRepeat) {
  ASSERT_OK_AND_ASSIGN(const ReplayResult recorded, Replay(kExample, {}));
  ReplayConfiguration exact{"exact", {recorded.start.devices[0].options}};
  exact.devices[0].admission.matching.matching = Matching::kExact;
  ASSERT_OK_AND_ASSIGN(const ReplayResult result, Replay(kExample, {exact}));
  const ReplayFigures& best_fit = result.configurations[0].devices[0].figures;
  const ReplayFigures& as_asked = result.configurations[1].devices[0].figures;
  EXPECT_EQ(as_asked.granted_blocks, best_fit.granted_blocks);
  EXPECT_EQ(as_asked.hits, best_fit.hits);
  EXPECT_EQ(as_asked.peak_rounding, Bytes());
  EXPECT_GT(best_fit.peak_rounding, Bytes());
}

}  // namespace
}  // namespace heapbroker

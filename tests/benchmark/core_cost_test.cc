// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Costs of the core that are the same on every machine.
#include "gtest/gtest.h"
#include "tests/benchmark/filled_core.h"
#include "tests/benchmark/program_traces.h"

namespace heapbroker {
namespace {

TEST(CoreMemoryTest, AnIdleBlockAndALeaseTakeLessThan256Bytes) {
  const MemoryCost cost = MeasureMemory(10000);
  EXPECT_LT(cost.idle_block, 256);
  EXPECT_LT(cost.lease, 256);
  // That something was measured at all.
  EXPECT_GT(cost.idle_block, 32);
  EXPECT_GT(cost.lease, 32);
}

TEST(ProgramTracesTest, HaveTheMeasuredSums) {
  const std::vector<ProgramTrace> traces = ProgramTraces();
  ASSERT_EQ(traces.size(), 5u);
  EXPECT_EQ(traces[2].name, "vgg16");
  EXPECT_EQ(traces[2].sizes.size(), 26u);
  EXPECT_EQ(traces[2].sizes.front(), MiB(196));
  Bytes sum;
  for (Bytes size : traces[2].sizes) sum += size;
  EXPECT_LE(sum, MiB(472));
  EXPECT_GT(sum, MiB(471));
}

TEST(ProgramTracesTest, EitherPolicyServesAProgramThatComesBackFromTheCache) {
  for (const ProgramTrace& trace : ProgramTraces()) {
    EXPECT_EQ(Replay({trace}, Matching::kExact, 5, 0).hit_rate, 1.0) << trace.name;
    EXPECT_EQ(Replay({trace}, Matching::kBestFit, 5, 0).hit_rate, 1.0) << trace.name;
  }
}

TEST(ProgramTracesTest, OnlyBestFitServesSizesThatVary) {
  const MatchingOutcome exact = Replay(ProgramTraces(), Matching::kExact, 40, 20);
  const MatchingOutcome best_fit = Replay(ProgramTraces(), Matching::kBestFit, 40, 20);
  EXPECT_LT(exact.hit_rate, 0.1);
  EXPECT_GT(best_fit.hit_rate, 0.5);
  EXPECT_EQ(exact.lost, Bytes());
}

}  // namespace
}  // namespace heapbroker

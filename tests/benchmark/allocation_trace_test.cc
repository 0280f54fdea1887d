// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/allocation_trace.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr uint32_t kSteps = 20000;

std::vector<AllocationTrace> AllTraces() {
  return {LogNormalTrace(1000, kSteps, 1), MixedAlignmentTrace(1000, kSteps, 2),
          DecodeTrace(kSteps, 3), NcnnTrace(kSteps, 4), GgmlTrace(kSteps, 5)};
}

TEST(AllocationTraceTest, FreesEverythingOnceAndKnowsItsPeak) {
  for (const AllocationTrace& trace : AllTraces()) {
    std::vector<uint64_t> sizes(trace.ids, 0);
    uint64_t allocated = 0;
    uint64_t peak = 0;
    for (const AllocationStep& step : trace.steps) {
      ASSERT_LT(step.id, trace.ids) << trace.name;
      ASSERT_NE(sizes[step.id] == 0, step.size == 0) << trace.name;
      allocated += step.size - sizes[step.id];
      sizes[step.id] = step.size;
      peak = std::max(peak, allocated);
    }
    EXPECT_EQ(allocated, 0u) << trace.name;
    EXPECT_EQ(Bytes(peak), trace.peak) << trace.name;
    EXPECT_GE(trace.steps.size(), kSteps) << trace.name;
  }
}

TEST(AllocationTraceTest, IsTheSameEachTime) {
  const std::vector<AllocationTrace> first = AllTraces();
  const std::vector<AllocationTrace> second = AllTraces();
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(std::equal(first[i].steps.begin(), first[i].steps.end(), second[i].steps.begin(),
                           second[i].steps.end()))
        << first[i].name;
  }
}

TEST(AllocationTraceTest, KeepsAsManyAliveAsItWasTold) {
  const AllocationTrace trace = LogNormalTrace(1000, kSteps, 1);
  EXPECT_EQ(trace.ids, 1000u);
  EXPECT_EQ(std::count_if(trace.steps.begin(), trace.steps.begin() + 1000,
                          [](const AllocationStep& step) { return step.size != 0; }),
            1000);
}

}  // namespace
}  // namespace heapbroker

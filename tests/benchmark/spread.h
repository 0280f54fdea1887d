// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What most calls take, and what all but the slowest do.
#ifndef TESTS_BENCHMARK_SPREAD_H_
#define TESTS_BENCHMARK_SPREAD_H_

#include <cstdint>
#include <vector>

namespace heapbroker {

// The value that the share `part` of `values` is below, where those were read off a
// scale in steps of `step`: each stands for the whole step around it, so that the
// result is finer than the scale. `values` must not be empty, and `step` above 0.
double GroupedPercentile(const std::vector<uint32_t>& values, double part, double step);

struct Spread {
  double p50 = 0;  // Nanoseconds.
  double p99 = 0;
};

// Of times in Ticks(), without what Ticks itself takes.
Spread SpreadOf(const std::vector<uint32_t>& ticks);

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_SPREAD_H_

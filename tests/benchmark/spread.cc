// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/spread.h"

#include <cmath>
#include <map>

#include "tests/benchmark/tick_clock.h"

namespace heapbroker {
namespace {

double TicksOfNothing() {
  static const double kNothing = [] {
    std::vector<uint32_t> ticks;
    for (int i = 0; i < 10001; ++i) {
      const uint64_t begin = Ticks();
      ticks.push_back(static_cast<uint32_t>(Ticks() - begin));
    }
    return GroupedPercentile(ticks, 0.5, TicksAtOnce());
  }();
  return kNothing;
}

}  // namespace

double GroupedPercentile(const std::vector<uint32_t>& values, double part, double step) {
  std::map<int64_t, size_t> counts;
  for (const uint32_t value : values) ++counts[std::llround(value / step)];
  const double wanted = part * static_cast<double>(values.size());
  double below = 0;
  for (const auto& [group, count] : counts) {
    const double within = (wanted - below) / static_cast<double>(count);
    if (within <= 1) return (static_cast<double>(group) - 0.5 + within) * step;
    below += static_cast<double>(count);
  }
  return (static_cast<double>(counts.rbegin()->first) + 0.5) * step;
}

Spread SpreadOf(const std::vector<uint32_t>& ticks) {
  const auto nanoseconds = [&ticks](double part) {
    return (GroupedPercentile(ticks, part, TicksAtOnce()) - TicksOfNothing()) *
           NanosecondsPerTick();
  };
  return {.p50 = nanoseconds(0.5), .p99 = nanoseconds(0.99)};
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/tick_clock.h"

#include <algorithm>
#include <vector>

namespace heapbroker {
namespace {

constexpr int kReadings = 100000;

// Without the waiting, so that two readings can be less than one step apart.
uint64_t TicksAtAnyMoment() {
#ifdef __x86_64__
  return __rdtsc();
#else
  return Ticks();
#endif
}

}  // namespace

double NanosecondsPerTick() {
  static const double kPerTick = [] {
    constexpr auto kMoment = std::chrono::milliseconds(20);
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t begin_ticks = Ticks();
    std::chrono::nanoseconds passed{};
    while (passed < kMoment) passed = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(passed.count()) / static_cast<double>(Ticks() - begin_ticks);
  }();
  return kPerTick;
}

double TicksAtOnce() {
  // A step need not be whole, so the mean of those that are one step, not two.
  static const double kAtOnce = [] {
    std::vector<uint64_t> steps;
    uint64_t last = TicksAtAnyMoment();
    for (int i = 0; i < kReadings; ++i) {
      const uint64_t now = TicksAtAnyMoment();
      if (now > last) steps.push_back(now - last);
      last = now;
    }
    const uint64_t least = *std::min_element(steps.begin(), steps.end());
    double sum = 0;
    double count = 0;
    for (const uint64_t step : steps) {
      if (step > least + 1) continue;
      sum += static_cast<double>(step);
      ++count;
    }
    return sum / count;
  }();
  return kAtOnce;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A clock for what takes nanoseconds.
#ifndef TESTS_BENCHMARK_TICK_CLOCK_H_
#define TESTS_BENCHMARK_TICK_CLOCK_H_

#include <chrono>
#include <cstdint>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace heapbroker {

// The processor's own counter where it is known how to read it. Waits for what was
// begun before, and holds back what comes after it.
inline uint64_t Ticks() {
#ifdef __x86_64__
  _mm_lfence();
  const uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Both are measured once, which takes a moment.
double NanosecondsPerTick();
// How many the counter goes on by at once: on some machines ten nanoseconds' worth.
double TicksAtOnce();

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_TICK_CLOCK_H_

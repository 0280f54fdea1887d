// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Calls of several kinds measured beside each other, so that what slows the
// machine down slows all of them, and their ratios stay.
#ifndef TESTS_BENCHMARK_ROUNDS_H_
#define TESTS_BENCHMARK_ROUNDS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace heapbroker {

// How long `work` took, or its error.
absl::StatusOr<absl::Duration> TimeOf(absl::FunctionRef<absl::Status()> work);

// One kind of call.
struct Case {
  std::string name;
  // Makes one call and says how long the part of it took that counts.
  std::function<absl::StatusOr<absl::Duration>()> call;
};

struct RoundOptions {
  int rounds = 5;
  int calls = 2000;  // Of each case in each round.
  // Calls of one case in a row. Short, since the machine's speed changes within a
  // second; not one, since each process would then find its caches cold.
  int slice = 50;
};

// The middle one; the mean of the two in the middle where their number is even.
// `values` must not be empty.
double Median(std::vector<double> values);

// A case's p50, in nanoseconds, of each round.
using P50s = std::vector<double>;

// In each round every case makes its calls, in slices, whose order is random and
// the same in every run of the program. One slice of each comes first and is not
// counted. In the order of `cases`; a call's error ends the measurement.
absl::StatusOr<std::vector<P50s>> Measure(const std::vector<Case>& cases,
                                          const RoundOptions& options);

// A case beside the one that all are compared with.
struct Comparison {
  double p50 = 0;  // Nanoseconds: the rounds' median.
  // To the other's p50 of the same round: the rounds' median and extremes.
  double ratio = 0;
  double lowest_ratio = 0;
  double highest_ratio = 0;
};

// Both must have the same number of rounds, at least one.
Comparison Compare(const P50s& measured, const P50s& base);

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_ROUNDS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/rounds.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

absl::Status RunSlice(const Case& measured, int calls, std::vector<double>& nanoseconds) {
  for (int i = 0; i < calls; ++i) {
    const absl::StatusOr<absl::Duration> took = measured.call();
    if (!took.ok()) {
      return absl::Status(took.status().code(),
                          absl::StrCat(measured.name, ": ", took.status().message()));
    }
    nanoseconds.push_back(absl::ToDoubleNanoseconds(*took));
  }
  return absl::OkStatus();
}

// Which case has each of a round's slices.
std::vector<size_t> SliceOrder(size_t cases, int slices, std::mt19937& random) {
  std::vector<size_t> order;
  std::vector<size_t> once(cases);
  std::iota(once.begin(), once.end(), size_t{0});
  for (int i = 0; i < slices; ++i) {
    // Each case once before any comes again, so that none is ever far away.
    std::shuffle(once.begin(), once.end(), random);
    order.insert(order.end(), once.begin(), once.end());
  }
  return order;
}

}  // namespace

absl::StatusOr<absl::Duration> TimeOf(absl::FunctionRef<absl::Status()> work) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = work();
  const auto end = std::chrono::steady_clock::now();
  if (!status.ok()) return status;
  return absl::FromChrono(end - begin);
}

double Median(std::vector<double> values) {
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + half, values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] + *std::max_element(values.begin(), values.begin() + half)) / 2;
}

absl::StatusOr<std::vector<P50s>> Measure(const std::vector<Case>& cases,
                                          const RoundOptions& options) {
  for (const Case& measured : cases) {
    std::vector<double> not_counted;
    HB_RETURN_IF_ERROR(RunSlice(measured, options.slice, not_counted));
  }
  std::mt19937 random;
  std::vector<P50s> p50s(cases.size());
  const int slices = (options.calls + options.slice - 1) / options.slice;
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<std::vector<double>> nanoseconds(cases.size());
    for (const size_t index : SliceOrder(cases.size(), slices, random)) {
      HB_RETURN_IF_ERROR(RunSlice(cases[index], options.slice, nanoseconds[index]));
    }
    for (size_t i = 0; i < cases.size(); ++i) p50s[i].push_back(Median(std::move(nanoseconds[i])));
  }
  return p50s;
}

Comparison Compare(const P50s& measured, const P50s& base) {
  std::vector<double> ratios;
  for (size_t round = 0; round < measured.size(); ++round) {
    ratios.push_back(measured[round] / base[round]);
  }
  const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
  return {.p50 = Median(measured),
          .ratio = Median(ratios),
          .lowest_ratio = *lowest,
          .highest_ratio = *highest};
}

}  // namespace heapbroker

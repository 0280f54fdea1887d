// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The library's sub-allocator beside others, on the same traces. See README.md beside
// this file.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/benchmark/allocation_trace.h"
#include "tests/benchmark/contender.h"
#include "tests/benchmark/measured_session.h"
#include "tests/benchmark/rounds.h"
#include "tests/benchmark/spread.h"
#include "tests/benchmark/suballocators.h"
#include "tests/benchmark/vma_contenders.h"

namespace heapbroker {
namespace {

// The project's goal, to VulkanMemoryAllocator's virtual block: p50 below its own, and
// p99 at most so much of it.
constexpr double kP99Goal = 1.1;
// Positions among the contenders.
constexpr size_t kOurs = 0;
constexpr size_t kVirtualBlock = 1;

struct Options {
  int rounds = 5;
  uint32_t steps = 200000;
  uint32_t many = 100000;
  std::string only;
};

std::vector<AllocationTrace> Traces(const Options& options) {
  const uint32_t few = std::min<uint32_t>(1000, options.many);
  return {LogNormalTrace(few, options.steps, 1),
          LogNormalTrace(options.many, options.steps + options.many, 2),
          MixedAlignmentTrace(few, options.steps, 3),
          DecodeTrace(options.steps, 4),
          NcnnTrace(options.steps, 5),
          GgmlTrace(options.steps, 6)};
}

// One contender on one trace: a value of each round.
struct Row {
  P50s allocate_p50, allocate_p99, free_p50, free_p99;
  Bytes held;
};

absl::Status ReplayOnce(const Contender& contender, const AllocationTrace& trace, int threads,
                        Row& row) {
  const absl::StatusOr<ReplayedTrace> replayed = contender.replay(trace, threads);
  if (!replayed.ok()) {
    return absl::Status(replayed.status().code(), absl::StrCat(contender.name, ", ", trace.name,
                                                               ": ", replayed.status().message()));
  }
  const Spread allocate = SpreadOf(replayed->allocations);
  const Spread free = SpreadOf(replayed->frees);
  row.allocate_p50.push_back(allocate.p50);
  row.allocate_p99.push_back(allocate.p99);
  row.free_p50.push_back(free.p50);
  row.free_p99.push_back(free.p99);
  row.held = std::max(row.held, replayed->held);
  return absl::OkStatus();
}

// In each round all of them, one after the other, in random order.
absl::StatusOr<std::vector<Row>> MeasureTrace(const std::vector<Contender>& contenders,
                                              const AllocationTrace& trace, int threads,
                                              int rounds) {
  std::vector<Row> rows(contenders.size());
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t index : order) {
      HB_RETURN_IF_ERROR(ReplayOnce(contenders[index], trace, threads, rows[index]));
    }
  }
  return rows;
}

double LostPercent(const Row& row, const AllocationTrace& trace) {
  const auto peak = static_cast<double>(trace.peak.count());
  return 100 * (static_cast<double>(row.held.count()) - peak) / peak;
}

void Print(const std::vector<Contender>& contenders, const AllocationTrace& trace, int threads,
           const std::vector<Row>& rows) {
  std::cout << absl::StrFormat("\n%s; %u steps, at most %s at once; %d thread%s\n", trace.name,
                               trace.steps.size(), FormatBytes(trace.peak), threads,
                               threads == 1 ? "" : "s");
  std::cout << absl::StrFormat("%-24s %17s %17s  %11s %11s %9s\n", "", "allocate p50, p99",
                               "free p50, p99", "ratios", "", "lost");
  const Row& base = rows[std::min(kVirtualBlock, rows.size() - 1)];
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::string lost =
        threads == 1 ? absl::StrFormat("%8.1f%%", LostPercent(row, trace)) : "";
    std::cout << absl::StrFormat(
        "%-24s %6.1f %7.0f ns %6.1f %7.0f ns  %5.2f %5.2f %5.2f %5.2f %9s\n", contenders[i].name,
        Median(row.allocate_p50), Median(row.allocate_p99), Median(row.free_p50),
        Median(row.free_p99), Compare(row.allocate_p50, base.allocate_p50).ratio,
        Compare(row.allocate_p99, base.allocate_p99).ratio,
        Compare(row.free_p50, base.free_p50).ratio, Compare(row.free_p99, base.free_p99).ratio,
        lost);
  }
}

// What of the goal is missed; empty where it is met.
std::string Missed(const Row& ours, const Row& theirs, const AllocationTrace& trace) {
  std::string missed;
  const auto check = [&](const char* what, double ratio, bool met) {
    if (!met) absl::StrAppend(&missed, " ", what, absl::StrFormat(" %.2f;", ratio));
  };
  const double allocate = Compare(ours.allocate_p50, theirs.allocate_p50).ratio;
  const double allocate_p99 = Compare(ours.allocate_p99, theirs.allocate_p99).ratio;
  const double free = Compare(ours.free_p50, theirs.free_p50).ratio;
  const double free_p99 = Compare(ours.free_p99, theirs.free_p99).ratio;
  check("allocate p50", allocate, allocate < 1);
  check("allocate p99", allocate_p99, allocate_p99 <= kP99Goal);
  check("free p50", free, free < 1);
  check("free p99", free_p99, free_p99 <= kP99Goal);
  const double lost = LostPercent(ours, trace) - LostPercent(theirs, trace);
  check("percent more lost", lost, lost <= 0);
  return missed.empty() ? "" : absl::StrCat(trace.name, ":", missed, "\n");
}

absl::Status Run(const Options& options) {
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<MeasuredSession> session,
                      MeasuredSession::Start("suballocator_benchmark"));
  std::vector<Contender> contenders = {Ranges()};
  for (Contender& contender : VmaContenders(session->device->context())) {
    contenders.push_back(std::move(contender));
  }
  const bool comparable = contenders.size() > kVirtualBlock;
  contenders.push_back(Leases(*session));
  contenders.push_back(Pools());
  std::string missed;
  std::cout << options.rounds << " rounds; medians; ratios to " << contenders[kVirtualBlock].name
            << "\n";
  for (const AllocationTrace& trace : Traces(options)) {
    if (trace.name.find(options.only) == std::string::npos) continue;
    for (const int threads : {1, 2}) {
      HB_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                          MeasureTrace(contenders, trace, threads, options.rounds));
      Print(contenders, trace, threads, rows);
      if (comparable && threads == 1) {
        missed += Missed(rows[kOurs], rows[kVirtualBlock], trace);
      }
    }
  }
  if (!comparable) {
    std::cout << "\nVulkanMemoryAllocator is not among them: its header was not found when this "
                 "was built.\n";
    return absl::OkStatus();
  }
  std::cout << absl::StrFormat(
      "\nGoal, with one thread: p50 below the virtual block's, p99 at most %.1f x, no more lost: "
      "%s\n%s",
      kP99Goal, missed.empty() ? "met." : "missed.", missed);
  return absl::OkStatus();
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) {
  CLI::App app("Compares sub-allocators on the same traces.", "suballocator_benchmark");
  heapbroker::Options options;
  app.add_option("--rounds", options.rounds, "Rounds; the result is their median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Steps of each trace, about")
      ->check(CLI::Range(100, 10000000))
      ->capture_default_str();
  app.add_option("--many", options.many, "How much is alive where it is much")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  app.add_option("--only", options.only, "Only traces with this in their names");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = heapbroker::Run(options);
  if (status.ok()) return 0;
  std::cerr << "suballocator_benchmark: " << status.message() << "\n";
  return 1;
}

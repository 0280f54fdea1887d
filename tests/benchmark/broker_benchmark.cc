// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the daemon's calls cost, as ratios to the cheapest calls of their kind
// that can be made on the machine at that moment. See README.md beside this file.
#include <sched.h>

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/posix/posix_error.h"
#include "tests/benchmark/echo_peer.h"
#include "tests/benchmark/measured_broker.h"
#include "tests/benchmark/rounds.h"

namespace heapbroker {
namespace {

// The project's goal: Allocate out of the cache, to the echo, at p50.
constexpr double kGoal = 1.3;
// A whole plan, to an echo and the descriptors of its arenas.
constexpr double kPlanGoal = 1.5;
// Positions in Cases().
constexpr size_t kEcho = 0;
constexpr size_t kAllocate = 1;
constexpr size_t kRawPlan = 2;
constexpr size_t kPlan = 3;
// Segments that are attached to: it should cost the same.
constexpr Bytes kSmallSegment = MiB(1);
constexpr Bytes kLargeSegment = GiB(1);

// Where this process and those that it starts run.
enum class Cores { kOne, kAll };

// With several cores it depends on where the scheduler happens to put a client
// and its server whether a call takes 40 or 55 us, for whole rounds, and often for
// the echo alone.
absl::Status StayOnOneCore() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return PosixError(errno, "cannot ask which cores this process may use");
  }
  // The last one: the first has most of the machine's interrupts.
  int core = CPU_SETSIZE - 1;
  while (core > 0 && !CPU_ISSET(core, &allowed)) --core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof(one), &one) == 0) return absl::OkStatus();
  return PosixError(errno, absl::StrCat("cannot stay on core ", core));
}

absl::Status EchoAndDescriptors(EchoPeer& echo, MeasuredBroker& broker) {
  HB_RETURN_IF_ERROR(broker.Allocate(echo.stub()).status());
  for (int i = 0; i < kArenas; ++i) HB_RETURN_IF_ERROR(echo.DescriptorRoundTrip());
  return absl::OkStatus();
}

std::vector<Case> Cases(EchoPeer& echo, MeasuredBroker& broker) {
  return {
      {"raw gRPC echo",
       [&] { return TimeOf([&] { return broker.Allocate(echo.stub()).status(); }); }},
      broker.AllocateAlone(),
      {absl::StrCat("raw gRPC echo and ", kArenas, " raw descriptors"),
       [&] { return TimeOf([&] { return EchoAndDescriptors(echo, broker); }); }},
      broker.LeasePlan(),
      broker.ReleaseAlone(),
      broker.HealthCheck(),
      broker.LeaseAndReturn(),
      broker.LeaseImportAndReturn(),
      broker.FetchAlone(),
      broker.ImportAlone(),
      {"raw socket, 32 bytes", [&] { return TimeOf([&] { return echo.PacketRoundTrip(); }); }},
      {"raw socket, 32 bytes and a descriptor",
       [&] { return TimeOf([&] { return echo.DescriptorRoundTrip(); }); }},
      broker.DirectAllocation(),
  };
}

void Print(const std::vector<Case>& cases, const std::vector<P50s>& p50s) {
  std::cout << absl::StrFormat("%-46s %10s %8s  %s\n", "", "p50", "x echo", "lowest to highest");
  for (size_t i = 0; i < cases.size(); ++i) {
    const Comparison row = Compare(p50s[i], p50s[kEcho]);
    std::cout << absl::StrFormat("%-46s %7.1f us %8.2f  %.2f to %.2f\n", cases[i].name,
                                 row.p50 / 1000, row.ratio, row.lowest_ratio, row.highest_ratio);
  }
  const double ratio = Compare(p50s[kAllocate], p50s[kEcho]).ratio;
  std::cout << absl::StrFormat("\nGoal: Allocate at most %.2f x the echo. It is %.2f: %s.\n", kGoal,
                               ratio, ratio <= kGoal ? "met" : "missed");
  const double plan = Compare(p50s[kPlan], p50s[kRawPlan]).ratio;
  std::cout << absl::StrFormat(
      "Goal: the plan at most %.2f x the echo and the descriptors. It is %.2f: %s.\n", kPlanGoal,
      plan, plan <= kPlanGoal ? "met" : "missed");
}

// To what is small: whether the size matters.
void PrintAttaching(const std::vector<Case>& cases, const std::vector<P50s>& p50s) {
  const Comparison large = Compare(p50s.back(), p50s[p50s.size() - 2]);
  std::cout << absl::StrFormat("%s: %.2f x that of %s (%.2f to %.2f).\n", cases.back().name,
                               large.ratio, FormatBytes(kSmallSegment), large.lowest_ratio,
                               large.highest_ratio);
}

absl::Status Run(const RoundOptions& options, Cores cores) {
  if (cores == Cores::kOne) HB_RETURN_IF_ERROR(StayOnOneCore());
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<EchoPeer> echo, EchoPeer::Start());
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<MeasuredBroker> broker, MeasuredBroker::Start());
  std::vector<Case> cases = Cases(*echo, *broker);
  HB_ASSIGN_OR_RETURN(Case small, broker->AttachToSegment(kSmallSegment));
  absl::StatusOr<Case> large = broker->AttachToSegment(kLargeSegment);
  const bool attaches = !absl::IsResourceExhausted(large.status());
  if (attaches) {
    HB_RETURN_IF_ERROR(large.status());
    cases.push_back(std::move(small));
    cases.push_back(*std::move(large));
  }
  // So that there are blocks in the cache.
  HB_RETURN_IF_ERROR(cases[kPlan].call().status());
  HB_ASSIGN_OR_RETURN(const uint64_t misses, broker->CacheMisses());
  HB_ASSIGN_OR_RETURN(const std::vector<P50s> p50s, Measure(cases, options));
  HB_ASSIGN_OR_RETURN(const uint64_t misses_after, broker->CacheMisses());
  if (misses_after != misses) {
    return absl::InternalError(absl::StrCat(misses_after - misses,
                                            " requests were not served from the cache, so these "
                                            "would not be the figures of what is"));
  }
  std::cout << absl::StrFormat(
      "%d rounds of %d calls each, in slices of %d, on %s; medians of the rounds\n\n",
      options.rounds, options.calls, options.slice,
      cores == Cores::kOne ? "one core" : "all cores");
  Print(cases, p50s);
  if (attaches) {
    PrintAttaching(cases, p50s);
  } else {
    std::cout << "The device has no room for the large segment: " << large.status() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) {
  CLI::App app("Compares the daemon's calls with a raw gRPC echo and a raw socket.",
               "broker_benchmark");
  heapbroker::RoundOptions options;
  app.add_option("--rounds", options.rounds, "Rounds; the result is their median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--calls", options.calls, "Calls of each kind in each round")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--slice", options.slice, "Calls of one kind in a row")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  heapbroker::Cores cores = heapbroker::Cores::kOne;
  const std::map<std::string, heapbroker::Cores> names = {{"one", heapbroker::Cores::kOne},
                                                          {"all", heapbroker::Cores::kAll}};
  app.add_option("--cores", cores,
                 "Where all processes run: one (steady ratios) or all (as in real life, noisy)")
      ->transform(CLI::CheckedTransformer(names))
      ->default_str("one");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = heapbroker::Run(options, cores);
  if (status.ok()) return 0;
  std::cerr << "broker_benchmark: " << status.message() << "\n";
  return 1;
}

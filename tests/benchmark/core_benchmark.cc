// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A request that the cache serves, and its return, by how many blocks are idle; what
// blocks cost in memory; two devices at once; and either matching policy on what real
// programs ask for. Bookkeeping only: no device behind it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmark/benchmark.h"
#include "tests/benchmark/filled_core.h"
#include "tests/benchmark/program_traces.h"

namespace heapbroker {
namespace {

constexpr int64_t kIdleCounts[] = {1000, 10000, 100000};

// Filled when it is first asked for, since filling takes longer than measuring.
template <Asked kAsked>
class PoolHits {
 public:
  explicit PoolHits(int64_t idle) : pool_(idle, kAsked) {}
  bool HitOnce() { return pool_.HitOnce(); }

 private:
  FilledPool pool_;
};

template <Asked kAsked>
class BrokerHits {
 public:
  explicit BrokerHits(int64_t idle) : complete_(broker_.Lease(idle)) { broker_.ReleaseAll(); }
  bool HitOnce() { return complete_ && broker_.HitOnce(kAsked); }

 private:
  FilledBroker broker_;
  const bool complete_;
};

// Filled once, however often the benchmark runs.
template <typename Full>
void RegisterHits(const std::string& name) {
  for (const int64_t idle : kIdleCounts) {
    benchmark::RegisterBenchmark(
        absl::StrCat(name, "/", idle).c_str(),
        [full = std::shared_ptr<Full>(), idle](benchmark::State& state) mutable {
          if (full == nullptr) full = std::make_shared<Full>(idle);
          for (auto unused : state) {
            if (!full->HitOnce()) {
              state.SkipWithError("the request was not served from the cache");
              break;
            }
          }
          state.counters["idle"] = static_cast<double>(idle);
        })
        ->Repetitions(5)
        ->ReportAggregatesOnly(true);
  }
}

// Keeps the medians of the processor's time: what others do on the machine
// meanwhile is not in it.
class RatioReporter final : public benchmark::ConsoleReporter {
 public:
  RatioReporter() : ConsoleReporter(OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown;
    for (const Run& run : runs) {
      failed_ |= run.error_occurred;
      if (!run.error_occurred && run.aggregate_name != "median") continue;
      shown.push_back(run);
      if (run.error_occurred) continue;
      const std::string& name = run.run_name.function_name;
      const auto idle = static_cast<int64_t>(run.counters.at("idle").value);
      medians_[name.substr(0, name.rfind('/'))][idle] = run.GetAdjustedCPUTime();
    }
    if (!shown.empty()) ConsoleReporter::ReportRuns(shown);
  }

  bool failed() const { return failed_ || medians_.empty(); }

  void PrintRatios() const {
    std::cout << absl::StrFormat("\n%-28s %8s %10s %8s %9s %9s\n", "hit and return", "idle",
                                 "processor", "ratio", "if log n", "if n");
    for (const auto& [name, by_idle] : medians_) {
      const auto& [fewest, base] = *by_idle.begin();
      for (const auto& [idle, time] : by_idle) {
        std::cout << absl::StrFormat("%-28s %8d %7.0f ns %8.2f %9.2f %9.0f\n", name, idle, time,
                                     time / base, std::log(idle) / std::log(fewest),
                                     static_cast<double>(idle) / static_cast<double>(fewest));
      }
    }
  }

 private:
  std::map<std::string, std::map<int64_t, double>> medians_;
  bool failed_ = false;
};

void PrintMemory() {
  const MemoryCost cost = MeasureMemory(10000);
  std::cout << absl::StrFormat("\nmemory: %.0f bytes for an idle block, %.0f for a lease\n",
                               cost.idle_block, cost.lease);
}

// Hits per second of so many threads, each on a device of its own.
double Throughput(int threads) {
  constexpr auto kTime = std::chrono::milliseconds(100);
  std::vector<std::unique_ptr<BrokerHits<Asked::kHot>>> brokers;
  for (int i = 0; i < threads; ++i) {
    brokers.push_back(std::make_unique<BrokerHits<Asked::kHot>>(1000));
  }
  std::vector<uint64_t> hits(threads);
  std::vector<std::thread> workers;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      uint64_t mine = 0;
      while (std::chrono::steady_clock::now() - begin < kTime) {
        for (int more = 0; more < 100; ++more) mine += brokers[i]->HitOnce() ? 1 : 0;
      }
      hits[i] = mine;
    });
  }
  for (std::thread& worker : workers) worker.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  uint64_t sum = 0;
  for (uint64_t one : hits) sum += one;
  return static_cast<double>(sum) / took.count();
}

void PrintTwoDevices() {
  std::vector<double> ratios;
  for (int round = 0; round < 7; ++round) {
    const double one = Throughput(1);
    ratios.push_back(Throughput(2) / one);
  }
  std::sort(ratios.begin(), ratios.end());
  std::cout << absl::StrFormat(
      "two threads on two devices: %.2f x one thread on one (%.2f to %.2f)\n",
      ratios[ratios.size() / 2], ratios.front(), ratios.back());
}

int Run(int argc, char** argv) {
  // First, so that the command line can say otherwise.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, interleave.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  RegisterHits<PoolHits<Asked::kHot>>("CachingPool/hot");
  RegisterHits<PoolHits<Asked::kRandom>>("CachingPool/random");
  RegisterHits<BrokerHits<Asked::kHot>>("DeviceBroker/hot");
  RegisterHits<BrokerHits<Asked::kRandom>>("DeviceBroker/random");
  RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.PrintRatios();
  PrintMemory();
  PrintTwoDevices();
  PrintMatching();
  return reporter.failed() ? 1 : 0;
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) { return heapbroker::Run(argc, argv); }

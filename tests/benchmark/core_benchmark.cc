// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A request that the cache serves, and its return, by how many blocks are idle:
// bookkeeping only, on a simulated device. Shows that it is O(log n).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmark/benchmark.h"
#include "common/base/clock.h"
#include "daemon/core/caching_pool.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/recorded_events.h"

namespace heapbroker {
namespace {

constexpr int64_t kIdleCounts[] = {10, 1000, 100000};
constexpr TenantId kTenant(1000);

// Everything may stay idle.
PoolLimits NoLimits() {
  PoolLimits limits;
  limits.max_free_allocation_count = UINT64_MAX;
  return limits;
}

// Which of the idle blocks a benchmark asks for. The same ten, whatever else is
// idle: all that grows is the depth of the search. All of them, in random order:
// each is found in memory that no cache of the processor holds any more.
enum class Asked { kTen, kAll };

// A pool with so many idle blocks, each of its own size.
template <Asked kAsked>
class FullPool {
 public:
  explicit FullPool(int64_t idle) : pool_({"type 0", 0, NoLimits()}) {
    const int64_t asked_each = kAsked == Asked::kTen ? idle / 10 : 1;
    for (int64_t i = 1; i <= idle; ++i) {
      const Bytes size = KiB(64 * i);
      const Block block{BlockId(i), kTenant, BlockClass(), 0, {DeviceAllocationId(i), size, {}}};
      pool_.Reserve(size);
      pool_.Commit(size, block, size);
      Return(block, size);
      if (i % asked_each == 0) asked_.push_back(size);
    }
    std::shuffle(asked_.begin(), asked_.end(), std::mt19937());
  }

  // Takes the block of one size and returns it. False where that is not possible.
  bool HitOnce() {
    const Bytes size = asked_[next_++ % asked_.size()];
    auto found = pool_.Acquire(kTenant, BlockClass(), {size, size}, size);
    auto* const idle = std::get_if<IdleBlock>(&found);
    return idle != nullptr && Return(std::move(idle->block), size);
  }

 private:
  bool Return(Block block, Bytes size) {
    return pool_.Release(std::move(block), size, ++stamp_).empty();
  }

  CachingPool pool_;
  ReleaseStamp stamp_ = 0;
  std::vector<Bytes> asked_;
  size_t next_ = 0;
};

// A broker with so many idle blocks, of the 64 sizes from 64 KiB to 15 MiB that
// new blocks are rounded to.
class FullBroker {
 public:
  explicit FullBroker(int64_t idle)
      : broker_(Options(), {device_, executor_, events_, clock_, alarm_}) {
    const absl::Status added = broker_.AddSession(kSession, kTenant);
    for (uint64_t power = 64 << 10; power < 16 << 20; power *= 2) {
      for (uint64_t step = 0; step < 8; ++step) sizes_.push_back(Bytes(power + step * power / 8));
    }
    std::shuffle(sizes_.begin(), sizes_.end(), std::mt19937());
    sizes_.resize(std::min<size_t>(sizes_.size(), idle));
    std::vector<BlockId> blocks;
    for (int64_t i = 0; added.ok() && i < idle; ++i) {
      if (!Start(NextSize()).ok()) break;
      executor_.RunAll();
      const absl::StatusOr<Grant>& grant = events_.grant(CallId(last_call_));
      if (grant.ok()) blocks.push_back(grant->blocks.front().id);
    }
    for (const BlockId block : blocks) broker_.Release(kSession, {block}).IgnoreError();
    complete_ = static_cast<int64_t>(blocks.size()) == idle;
  }

  // Leases a block and returns it. False where the cache did not serve it.
  bool HitOnce() {
    if (!complete_) return false;
    const auto outcome = Start(NextSize());
    if (!outcome.ok()) return false;
    const auto* const grant = std::get_if<Grant>(&*outcome);
    return grant != nullptr && broker_.Release(kSession, {grant->blocks.front().id}).ok();
  }

 private:
  static constexpr SessionId kSession{1};

  static LedgerOptions Options() {
    LedgerOptions options;
    options.admission.heaps = {{Bytes(uint64_t{1} << 50)}};
    options.admission.pools = {{"type 0", 0, true, false, NoLimits()}};
    return options;
  }

  Bytes NextSize() { return sizes_[next_++ % sizes_.size()]; }
  absl::StatusOr<std::variant<Grant, Deferred>> Start(Bytes size) {
    AllocateRequest request;
    request.blocks.resize(1);
    request.blocks[0].size = size;
    return broker_.Allocate(kSession, CallId(++last_call_), request);
  }

  SimulatedDevice device_;
  RealClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  RecordedEvents events_;
  DeviceBroker broker_;
  std::vector<Bytes> sizes_;
  size_t next_ = 0;
  uint64_t last_call_ = 0;
  bool complete_ = false;
};

// Filled once, however often the benchmark runs.
template <typename Full>
void RegisterHits(const std::string& name) {
  for (const int64_t idle : kIdleCounts) {
    benchmark::RegisterBenchmark(
        absl::StrCat(name, "/", idle).c_str(),
        [full = std::make_shared<Full>(idle), idle](benchmark::State& state) {
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

int Run(int argc, char** argv) {
  // First, so that the command line can say otherwise.
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, interleave.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  RegisterHits<FullPool<Asked::kTen>>("CachingPool/ten_sizes");
  RegisterHits<FullPool<Asked::kAll>>("CachingPool/all_sizes");
  RegisterHits<FullBroker>("DeviceBroker");
  RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.PrintRatios();
  return reporter.failed() ? 1 : 0;
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) { return heapbroker::Run(argc, argv); }

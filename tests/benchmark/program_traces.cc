// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/program_traces.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/recorded_events.h"

namespace heapbroker {
namespace {

constexpr SessionId kSession(1);

// Blocks of `largest` first, then of 16 and 8 MiB as long as enough is left for the
// others, then equal ones.
ProgramTrace Trace(std::string name, size_t blocks, Bytes total, Bytes largest) {
  ProgramTrace trace{std::move(name), {}};
  Bytes left = total;
  for (Bytes size : {largest, MiB(16), MiB(8)}) {
    while (trace.sizes.size() + 1 < blocks &&
           left >= size + KiB(64 * (blocks - trace.sizes.size()))) {
      trace.sizes.push_back(size);
      left -= size;
      if (size == largest) break;
    }
  }
  const size_t rest = blocks - trace.sizes.size();
  for (size_t i = 0; i < rest; ++i) trace.sizes.push_back(Bytes(left.count() / rest));
  return trace;
}

class Replayer {
 public:
  explicit Replayer(Matching matching)
      : broker_(Options(matching), {device_, executor_, events_, clock_, alarm_}) {
    broker_.AddSession(kSession, TenantId(1000)).IgnoreError();
  }

  // Returns what was lost to rounding while all was held.
  Bytes Run(const std::vector<Bytes>& sizes) {
    std::vector<BlockId> blocks;
    for (Bytes size : sizes) {
      AllocateRequest request;
      request.blocks.resize(1);
      request.blocks[0].size = size;
      const CallId call(++last_call_);
      auto outcome = broker_.Allocate(kSession, call, request);
      executor_.RunAll();
      if (!outcome.ok()) continue;
      const auto* at_once = std::get_if<Grant>(&*outcome);
      if (at_once == nullptr && !events_.grant(call).ok()) continue;
      blocks.push_back((at_once ? *at_once : *events_.grant(call)).blocks.front().id);
    }
    const Bytes lost = broker_.Stats().pools.front().rounding;
    for (BlockId block : blocks) broker_.Release(kSession, {block}).IgnoreError();
    executor_.RunAll();
    return lost;
  }
  PoolStats Pool() const { return broker_.Stats().pools.front(); }

 private:
  static LedgerOptions Options(Matching matching) {
    LedgerOptions options;
    options.admission.heaps = {{GiB(4)}};
    options.admission.matching.matching = matching;
    return options;
  }

  SimulatedDevice device_;
  FakeClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  RecordedEvents events_;
  DeviceBroker broker_;
  uint64_t last_call_ = 0;
};

}  // namespace

std::vector<ProgramTrace> ProgramTraces() {
  return {Trace("squeezenet", 6, MiB(25), MiB(16)), Trace("resnet18", 16, MiB(135), MiB(16)),
          Trace("vgg16", 26, MiB(472), MiB(196)), Trace("ViT", 29, MiB(218), MiB(16)),
          Trace("llama 45 M", 11, MiB(86), MiB(82))};
}

MatchingOutcome Replay(const std::vector<ProgramTrace>& traces, Matching matching, int runs,
                       uint32_t varies) {
  Replayer replayer(matching);
  std::mt19937 random(1);
  MatchingOutcome outcome;
  PoolStats first;
  Bytes lost;
  for (int run = 0; run < runs; ++run) {
    // The first time each of them, so that all know the cache from then on.
    const size_t which = static_cast<size_t>(run) < traces.size()
                             ? run
                             : std::uniform_int_distribution<size_t>(0, traces.size() - 1)(random);
    std::vector<Bytes> sizes = traces[which].sizes;
    for (Bytes& size : sizes) {
      const uint64_t most = size.count() / 1000 * varies;
      size += Bytes(std::uniform_int_distribution<uint64_t>(0, most)(random));
    }
    lost += replayer.Run(sizes);
    if (static_cast<size_t>(run) + 1 == traces.size()) first = replayer.Pool();
  }
  const PoolStats last = replayer.Pool();
  outcome.hit_rate = static_cast<double>(last.hits - first.hits) /
                     static_cast<double>(std::max<uint64_t>(last.requests - first.requests, 1));
  outcome.lost = Bytes(lost.count() / runs);
  outcome.idle = last.idle;
  return outcome;
}

void PrintMatching() {
  constexpr int kRuns = 200;
  std::vector<std::vector<ProgramTrace>> groups;
  for (const ProgramTrace& trace : ProgramTraces()) groups.push_back({trace});
  groups.push_back(ProgramTraces());
  std::cout << absl::StrFormat("\n%-12s %7s | %9s %9s %9s | %9s %9s %9s\n", "program", "sizes",
                               "exact:hit", "lost", "kept", "best_fit", "lost", "kept");
  const auto row = [](const MatchingOutcome& outcome) {
    return absl::StrFormat("%8.1f%% %9s %9s", 100 * outcome.hit_rate, FormatBytes(outcome.lost),
                           FormatBytes(outcome.idle));
  };
  for (const std::vector<ProgramTrace>& group : groups) {
    for (const uint32_t varies : {0u, 20u, 100u}) {
      std::cout << absl::StrFormat(
          "%-12s %6.0f%% | %s | %s\n", group.size() > 1 ? "all of them" : group.front().name,
          varies / 10.0, row(Replay(group, Matching::kExact, kRuns, varies)),
          row(Replay(group, Matching::kBestFit, kRuns, varies)));
    }
  }
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/replay_command.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "daemon/trace/trace_reader.h"

namespace heapbroker {
namespace {

constexpr size_t kMostConfigurations = 100;

// Turns the configurations so far into those with each of `values`; without any
// they stay as they are.
template <typename T, typename Apply>
void Multiply(std::vector<ReplayConfiguration>& configurations, const std::vector<T>& values,
              Apply apply) {
  if (values.empty()) return;
  std::vector<ReplayConfiguration> all;
  for (const ReplayConfiguration& configuration : configurations) {
    for (const T& value : values) {
      ReplayConfiguration& one = all.emplace_back(configuration);
      const std::string name = apply(value, one.devices);
      absl::StrAppend(&one.name, one.name.empty() ? "" : ", ", name);
    }
  }
  configurations = std::move(all);
}

absl::Status ApplyBudgets(const std::vector<HeapBudgetOption>& options,
                          std::vector<LedgerOptions>& devices) {
  HB_RETURN_IF_ERROR(CheckBudgetDevices(options, devices.size()));
  for (const HeapBudgetOption& option : options) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (option.device && *option.device != i) continue;
      std::vector<HeapLimit>& heaps = devices[i].admission.heaps;
      if (option.heap && *option.heap >= heaps.size()) {
        return absl::InvalidArgumentError(absl::StrCat("--heap-budget names heap ", *option.heap,
                                                       ", and device ", i, " has ", heaps.size(),
                                                       ", counted from 0"));
      }
      for (size_t heap = 0; heap < heaps.size(); ++heap) {
        if (!option.heap || *option.heap == heap) heaps[heap] = {option.limit};
      }
    }
  }
  return absl::OkStatus();
}

// Pools of one --pool on every device.
absl::Status CheckPools(const ReplayOptions::Pools& pools, absl::Span<const TracedDevice> devices) {
  std::vector<ResolvedPools> resolved;
  for (const TracedDevice& device : devices) {
    resolved.push_back(ResolvePools(pools.specs, device.info));
  }
  return CheckEverySpecMatches(pools.specs, resolved);
}

absl::Status CheckCount(const ReplayOptions& options) {
  size_t count = 1;
  for (const size_t given :
       {options.pools.size(), options.matchings.size(), options.slacks_per_mille.size(),
        options.idle_ttls.size(), options.head_timeouts.size()}) {
    if (given > 1) count *= given;
    if (count <= kMostConfigurations) continue;
    return absl::InvalidArgumentError(absl::StrCat("the options make ", count,
                                                   " configurations or more; at most ",
                                                   kMostConfigurations, " are replayed at a time"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ReplayConfiguration>> MakeConfigurations(
    const ReplayOptions& options, absl::Span<const TracedDevice> devices) {
  HB_RETURN_IF_ERROR(CheckCount(options));
  ReplayConfiguration recorded;
  for (const TracedDevice& device : devices) recorded.devices.push_back(device.options);
  HB_RETURN_IF_ERROR(ApplyBudgets(options.heap_budgets, recorded.devices));
  if (!options.heap_budgets.empty()) recorded.name = "other budgets";
  for (const ReplayOptions::Pools& pools : options.pools) {
    HB_RETURN_IF_ERROR(CheckPools(pools, devices));
  }
  std::vector<ReplayConfiguration> all = {recorded};
  using Devices = std::vector<LedgerOptions>;
  Multiply(all, options.pools, [&](const ReplayOptions::Pools& pools, Devices& ledgers) {
    for (size_t i = 0; i < ledgers.size(); ++i) {
      ledgers[i].admission.pools = ResolvePools(pools.specs, devices[i].info).pools;
    }
    return pools.text.empty() ? std::string("default pools") : Printable(pools.text);
  });
  Multiply(all, options.matchings, [](Matching matching, Devices& ledgers) {
    for (LedgerOptions& ledger : ledgers) ledger.admission.matching.matching = matching;
    return std::string(matching == Matching::kExact ? "exact" : "best_fit");
  });
  Multiply(all, options.slacks_per_mille, [](uint32_t slack, Devices& ledgers) {
    for (LedgerOptions& ledger : ledgers) ledger.admission.matching.slack_per_mille = slack;
    return absl::StrFormat("slack %.1f %%", slack / 10.0);
  });
  Multiply(all, options.idle_ttls, [](absl::Duration ttl, Devices& ledgers) {
    for (LedgerOptions& ledger : ledgers) ledger.admission.idle_ttl = ttl;
    return absl::StrCat("idle ", absl::FormatDuration(ttl));
  });
  Multiply(all, options.head_timeouts, [](absl::Duration timeout, Devices& ledgers) {
    for (LedgerOptions& ledger : ledgers) ledger.admission.head_timeout = timeout;
    return absl::StrCat("head ", absl::FormatDuration(timeout));
  });
  // Nothing was asked for: that is the recorded one.
  if (all.front().name.empty()) all.clear();
  return all;
}

absl::StatusOr<std::string> RunReplay(const ReplayOptions& options) {
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(options.path));
  HB_ASSIGN_OR_RETURN(const std::vector<ReplayConfiguration> configurations,
                      MakeConfigurations(options, reader->start().devices));
  HB_ASSIGN_OR_RETURN(const ReplayResult result, Replay(options.path, configurations));
  return RenderReplay(result);
}

}  // namespace heapbroker

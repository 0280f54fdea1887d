// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/ledgers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/app/heap_budgets.h"
#include "daemon/core/pool_spec.h"

namespace heapbroker {

absl::StatusOr<Ledgers> ChooseLedgers(absl::Span<const DeviceInfo> devices,
                                      const DaemonOptions& options, const Machine& machine) {
  HB_RETURN_IF_ERROR(CheckBudgetDevices(options.heap_budgets, devices.size()));
  DeviceCounts counts{devices.size(), 0};
  for (const DeviceInfo& device : devices) counts.software += device.software() ? 1 : 0;
  const Bytes memory(machine.memory.count() / std::max<size_t>(1, counts.software));
  Ledgers ledgers;
  std::vector<ResolvedPools> resolved;
  for (const DeviceInfo& device : devices) {
    LedgerOptions& ledger = ledgers.options.emplace_back();
    AdmissionOptions& admission = ledger.admission;
    HB_ASSIGN_OR_RETURN(HeapBudgets budgets,
                        ChooseHeapBudgets(device, memory, options.heap_budgets));
    admission.heaps = std::move(budgets.limits);
    ledgers.warnings.insert(ledgers.warnings.end(), budgets.warnings.begin(),
                            budgets.warnings.end());
    admission.count_limits = ChooseCountLimits(device, machine.limits, counts);
    resolved.push_back(ResolvePools(options.pools, device));
    admission.pools = resolved.back().pools;
    for (const std::string& note : resolved.back().notes) {
      ledgers.warnings.push_back(absl::StrCat("device ", device.index, ": ", note));
    }
    admission.matching = options.matching;
    admission.idle_ttl = options.idle_ttl;
    admission.head_timeout = options.head_timeout;
    ledger.tenants = device.software() ? options.software_tenants : TenantRule::kAnyTenant;
  }
  HB_RETURN_IF_ERROR(CheckEverySpecMatches(options.pools, resolved));
  return ledgers;
}

}  // namespace heapbroker

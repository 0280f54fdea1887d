// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The daemon's own limit for each heap of a device.
#ifndef DAEMON_APP_HEAP_BUDGETS_H_
#define DAEMON_APP_HEAP_BUDGETS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/device_info.h"
#include "daemon/core/heap_budget.h"
#include "heapbroker/units.h"

namespace heapbroker {

// One --heap-budget.
struct HeapBudgetOption {
  std::optional<uint32_t> heap;  // Unset: every heap.
  Bytes limit;
  std::optional<uint32_t> device = std::nullopt;  // DeviceInfo::index; unset: every device.
};

// "4GiB", "0=4GiB" or "1:0=4GiB"; INVALID_ARGUMENT otherwise, and for a limit of 0.
absl::StatusOr<HeapBudgetOption> ParseHeapBudget(absl::string_view text);

struct HeapBudgets {
  std::vector<HeapLimit> limits;      // One for each heap.
  std::vector<std::string> warnings;  // What an administrator should know.
};

// Nine tenths of a heap of hardware, and of what its driver offers at the moment:
// others take their part, and a driver that over-commits loses the device later. A
// software device takes its "device memory" from the machine's: at most half of
// `machine_memory`, which is its share where there are several.
// An option sets a heap's limit as it is, whatever the driver says; of several for a
// heap the last counts.
//   INVALID_ARGUMENT  an option for a heap that the device does not have
absl::StatusOr<HeapBudgets> ChooseHeapBudgets(const DeviceInfo& device, Bytes machine_memory,
                                              const std::vector<HeapBudgetOption>& options);

// INVALID_ARGUMENT for an option for a device beyond the first `devices`.
absl::Status CheckBudgetDevices(const std::vector<HeapBudgetOption>& options, size_t devices);

// The machine's memory, or the control group's limit where that is lower: what
// this process could have at most.
Bytes MachineMemory();

// The `memory.max` of a control group, as the file has it; unset for "max" and
// for anything that is no number.
std::optional<Bytes> ParseMemoryMax(absl::string_view text);

}  // namespace heapbroker
#endif  // DAEMON_APP_HEAP_BUDGETS_H_

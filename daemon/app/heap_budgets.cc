// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/heap_budgets.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/byte_size.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The lowest memory.max from this process's control group up to the root.
std::optional<Bytes> ControlGroupLimit() {
  std::string group = ReadFile("/proc/self/cgroup");
  // Version 2 has the one line "0::/path".
  const size_t at = group.find("0::/");
  if (at == std::string::npos) return std::nullopt;
  group = group.substr(at + 3, group.find('\n', at) - at - 3);
  std::optional<Bytes> lowest;
  while (true) {
    const auto limit =
        ParseMemoryMax(ReadFile(absl::StrCat("/sys/fs/cgroup", group, "/memory.max")));
    if (limit && (!lowest || *limit < *lowest)) lowest = limit;
    if (group.empty() || group == "/") return lowest;
    group = group.substr(0, group.rfind('/'));
  }
}

}  // namespace

absl::StatusOr<HeapBudgetOption> ParseHeapBudget(absl::string_view text) {
  HeapBudgetOption option;
  const size_t equals = text.find('=');
  if (equals != absl::string_view::npos) {
    uint32_t heap = 0;
    if (!absl::SimpleAtoi(text.substr(0, equals), &heap)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", Printable(text),
                       "\": in front of \"=\" belongs the index of a heap, as in 0=4GiB"));
    }
    option.heap = heap;
    text = text.substr(equals + 1);
  }
  HB_ASSIGN_OR_RETURN(option.limit, ParseByteSize(text));
  if (option.limit == Bytes()) {
    return absl::InvalidArgumentError("a budget of 0 would refuse every request");
  }
  return option;
}

absl::StatusOr<HeapBudgets> ChooseHeapBudgets(const DeviceInfo& device, Bytes machine_memory,
                                              const std::vector<HeapBudgetOption>& options) {
  HeapBudgets budgets;
  for (const HeapInfo& heap : device.heaps) {
    const Bytes offered = std::min(heap.size, heap.driver_budget.value_or(heap.size));
    const Bytes tenth(offered.count() / 10);
    budgets.limits.push_back(device.software()
                                 ? std::min(heap.size, Bytes(machine_memory.count() / 2))
                                 : offered - tenth);
  }
  for (const HeapBudgetOption& option : options) {
    if (option.heap && *option.heap >= budgets.limits.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--heap-budget names heap ", *option.heap,
                                                     ", and the device has ", budgets.limits.size(),
                                                     ", counted from 0"));
    }
    for (size_t heap = 0; heap < budgets.limits.size(); ++heap) {
      if (!option.heap || *option.heap == heap) budgets.limits[heap] = option.limit;
    }
  }
  for (size_t heap = 0; heap < budgets.limits.size(); ++heap) {
    if (budgets.limits[heap] <= device.heaps[heap].size) continue;
    budgets.warnings.push_back(absl::StrCat(
        "the budget of heap ", heap, ", ", FormatBytes(budgets.limits[heap]),
        ", is over the size that the driver reports, ", FormatBytes(device.heaps[heap].size)));
  }
  return budgets;
}

std::optional<Bytes> ParseMemoryMax(absl::string_view text) {
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &bytes)) return std::nullopt;
  return Bytes(bytes);
}

Bytes MachineMemory() {
  struct sysinfo info {};
  // Fails only for a bad pointer.
  sysinfo(&info);
  const Bytes machine(uint64_t{info.totalram} * info.mem_unit);
  return std::min(machine, ControlGroupLimit().value_or(machine));
}

}  // namespace heapbroker

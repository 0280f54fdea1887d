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

// How much of a heap, and of what its driver offers, is the daemon's.
constexpr uint32_t kDriverPerMille = 900;

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

// Takes "INDEX" and `mark` off the front of `text`, where there is such a mark.
absl::StatusOr<std::optional<uint32_t>> TakeIndex(absl::string_view whole, absl::string_view& text,
                                                  char mark, absl::string_view of_what) {
  const size_t at = text.find(mark);
  if (at == absl::string_view::npos) return std::optional<uint32_t>();
  uint32_t index = 0;
  if (!absl::SimpleAtoi(text.substr(0, at), &index)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", Printable(whole), "\": in front of \"",
                                                   std::string(1, mark), "\" belongs the index of ",
                                                   of_what));
  }
  text.remove_prefix(at + 1);
  return std::optional<uint32_t>(index);
}

}  // namespace

absl::StatusOr<HeapBudgetOption> ParseHeapBudget(absl::string_view text) {
  const absl::string_view whole = text;
  HeapBudgetOption option;
  HB_ASSIGN_OR_RETURN(option.device, TakeIndex(whole, text, ':', "a device, as in 1:0=4GiB"));
  HB_ASSIGN_OR_RETURN(option.heap, TakeIndex(whole, text, '=', "a heap, as in 0=4GiB"));
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
    if (device.software()) {
      budgets.limits.push_back({std::min(heap.size, Bytes(machine_memory.count() / 2))});
    } else {
      budgets.limits.push_back({heap.size - Bytes(heap.size.count() / 10), kDriverPerMille});
    }
  }
  for (const HeapBudgetOption& option : options) {
    if (option.device && *option.device != device.index) continue;
    if (option.heap && *option.heap >= budgets.limits.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--heap-budget names heap ", *option.heap,
                                                     ", and device ", device.index, " has ",
                                                     budgets.limits.size(), ", counted from 0"));
    }
    for (size_t heap = 0; heap < budgets.limits.size(); ++heap) {
      if (!option.heap || *option.heap == heap) budgets.limits[heap] = {option.limit};
    }
  }
  for (size_t heap = 0; heap < budgets.limits.size(); ++heap) {
    const Bytes limit = budgets.limits[heap].bytes;
    if (limit <= device.heaps[heap].size) continue;
    budgets.warnings.push_back(absl::StrCat(
        "the budget of heap ", heap, " of device ", device.index, ", ", FormatBytes(limit),
        ", is over the size that the driver reports, ", FormatBytes(device.heaps[heap].size)));
  }
  return budgets;
}

absl::Status CheckBudgetDevices(const std::vector<HeapBudgetOption>& options, size_t devices) {
  for (const HeapBudgetOption& option : options) {
    if (!option.device || *option.device < devices) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--heap-budget names device ", *option.device, ", and there ",
        devices == 1 ? "is one, device 0" : absl::StrCat("are ", devices, ", counted from 0")));
  }
  return absl::OkStatus();
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

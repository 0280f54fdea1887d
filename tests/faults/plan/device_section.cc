// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/device_section.h"

#include <limits>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "tests/faults/plan/rule_parser.h"
#include "tests/faults/plan/vulkan_names.h"

namespace heapbroker::faults {
namespace {

constexpr uint64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

absl::Status ReadName(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(device.device_name, line.Word("a name"));
  if (device.device_name->size() < VK_MAX_PHYSICAL_DEVICE_NAME_SIZE) return absl::OkStatus();
  return line.Error(
      absl::StrCat("a name has fewer than ", VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, " bytes"));
}

absl::Status ReadType(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("a type of device"));
  const auto type = ParseDeviceType(word);
  HB_RETURN_IF_ERROR(line.At(type.status()));
  device.device_type = *type;
  return absl::OkStatus();
}

absl::StatusOr<PlannedUuid> ReadUuid(LineReader& line) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("a UUID"));
  const std::string digits = absl::StrReplaceAll(word, {{"-", ""}});
  bool readable = digits.size() == 2 * VK_UUID_SIZE;
  for (char digit : digits) {
    readable = readable && absl::ascii_isxdigit(static_cast<unsigned char>(digit));
  }
  if (!readable) {
    return line.Error(absl::StrCat("\"", word, "\" is no UUID; one has 32 hexadecimal digits"));
  }
  const std::string bytes = absl::HexStringToBytes(digits);
  PlannedUuid uuid{};
  for (size_t i = 0; i < uuid.size(); ++i) uuid[i] = static_cast<uint8_t>(bytes[i]);
  return uuid;
}

absl::Status ReadDeviceUuid(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(device.device_uuid, ReadUuid(line));
  return absl::OkStatus();
}

absl::Status ReadDriverUuid(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(device.driver_uuid, ReadUuid(line));
  return absl::OkStatus();
}

absl::Status ReadDriverId(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const uint64_t id, line.Number("VkDriverId", 0x7FFFFFFE));
  device.driver_id = static_cast<VkDriverId>(id);
  return absl::OkStatus();
}

absl::Status ReadRealDevice(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const uint64_t index, line.Number("index of a device", kMaxUint32));
  device.real_device = static_cast<uint32_t>(index);
  return absl::OkStatus();
}

absl::Status ReadMode(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("strict or lenient"));
  device.strict = word == "strict";
  if (device.strict || word == "lenient") return absl::OkStatus();
  return line.Error(absl::StrCat("\"", word, "\" is no mode; allowed are strict and lenient"));
}

absl::Status ReadHeap(LineReader& line, DevicePlan& device) {
  if (device.heaps.size() == VK_MAX_MEMORY_HEAPS) {
    return line.Error(absl::StrCat("a device has at most ", VK_MAX_MEMORY_HEAPS, " heaps"));
  }
  HeapPlan heap;
  HB_ASSIGN_OR_RETURN(heap.size, line.Size("the size of a heap"));
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("the heap's flags, or none,"));
  const auto flags = ParseHeapFlags(word);
  HB_RETURN_IF_ERROR(line.At(flags.status()));
  heap.flags = *flags;
  device.heaps.push_back(heap);
  return absl::OkStatus();
}

absl::Status ReadMemoryType(LineReader& line, DevicePlan& device) {
  if (device.memory_types.size() == VK_MAX_MEMORY_TYPES) {
    return line.Error(absl::StrCat("a device has at most ", VK_MAX_MEMORY_TYPES, " memory types"));
  }
  MemoryTypePlan type;
  HB_ASSIGN_OR_RETURN(const uint64_t heap, line.Number("index of a heap", VK_MAX_MEMORY_HEAPS - 1));
  type.heap = static_cast<uint32_t>(heap);
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("the type's flags, or none,"));
  const auto flags = ParseMemoryFlags(word);
  HB_RETURN_IF_ERROR(line.At(flags.status()));
  type.flags = *flags;
  if (!line.AtEnd()) {
    HB_ASSIGN_OR_RETURN(const uint64_t real,
                        line.Number("index of the driver's type", VK_MAX_MEMORY_TYPES - 1));
    type.real_type = static_cast<uint32_t>(real);
  }
  device.memory_types.push_back(type);
  return absl::OkStatus();
}

constexpr uint64_t kMaxQueues = 64;

absl::Status ReadQueueFamily(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("what its queues can do"));
  const auto flags = ParseQueueFlags(word);
  HB_RETURN_IF_ERROR(line.At(flags.status()));
  QueueFamilyPlan family{.flags = *flags};
  if (!line.AtEnd()) {
    HB_ASSIGN_OR_RETURN(const uint64_t queues, line.Number("how many queues it has", kMaxQueues));
    if (queues == 0) return line.Error("a family has at least one queue");
    family.queues = static_cast<uint32_t>(queues);
  }
  device.queue_families.push_back(family);
  return absl::OkStatus();
}

absl::Status ReadEnforce(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("heaps"));
  if (word != "heaps") {
    return line.Error(absl::StrCat("\"", word, "\" cannot be enforced; allowed is heaps"));
  }
  device.enforce_heaps = true;
  return absl::OkStatus();
}

absl::Status ReadPadding(LineReader& line, DevicePlan& device) {
  Padding padding;
  HB_ASSIGN_OR_RETURN(padding.granularity, line.Size("what sizes are rounded up to"));
  if (padding.granularity == Bytes()) return line.Error("sizes cannot be rounded up to 0");
  HB_ASSIGN_OR_RETURN(padding.extra, line.Size("what is added to them"));
  device.padding = padding;
  return absl::OkStatus();
}

absl::Status ReadFreshMemory(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const uint64_t byte, line.Number("byte", 255));
  device.fresh_memory = static_cast<uint8_t>(byte);
  return absl::OkStatus();
}

absl::Status ReadMaxAllocationCount(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const uint64_t count, line.Number("count", kMaxUint32));
  device.max_allocation_count = static_cast<uint32_t>(count);
  return absl::OkStatus();
}

absl::Status ReadMaxAllocationSize(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(device.max_allocation_size, line.Size("a size"));
  return absl::OkStatus();
}

absl::Status ReadMaxBufferSize(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(device.max_buffer_size, line.Size("a size"));
  return absl::OkStatus();
}

absl::Status ReadLargestRealAllocation(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(device.largest_real_allocation, line.Size("a size"));
  return absl::OkStatus();
}

absl::Status ReadBudget(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const uint64_t heap, line.Number("index of a heap", VK_MAX_MEMORY_HEAPS - 1));
  BudgetPlan budget;
  HB_ASSIGN_OR_RETURN(budget.budget, line.Size("a budget"));
  if (!line.AtEnd()) {
    HB_ASSIGN_OR_RETURN(budget.usage, line.Size("a usage"));
  }
  device.budgets[static_cast<uint32_t>(heap)] = budget;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadExtension(LineReader& line) {
  HB_ASSIGN_OR_RETURN(std::string name, line.Word("the name of a device extension"));
  if (name.size() < VK_MAX_EXTENSION_NAME_SIZE) return name;
  return line.Error(absl::StrCat("a name has fewer than ", VK_MAX_EXTENSION_NAME_SIZE, " bytes"));
}

absl::Status ReadHide(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(std::string name, ReadExtension(line));
  device.hidden_extensions.insert(std::move(name));
  return absl::OkStatus();
}

absl::Status ReadAdd(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(std::string name, ReadExtension(line));
  device.added_extensions.insert(std::move(name));
  return absl::OkStatus();
}

absl::Status ReadExternal(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("a type of handle"));
  const auto handle = ParseHandleType(word);
  HB_RETURN_IF_ERROR(line.At(handle.status()));
  ExternalPlan& external = device.external[*handle];
  HB_ASSIGN_OR_RETURN(const std::string lie, line.Word("what it cannot do"));
  if (lie == "not-exportable") {
    external.exportable = false;
  } else if (lie == "not-importable") {
    external.importable = false;
  } else if (lie == "dedicated-only") {
    external.dedicated_only = true;
  } else {
    return line.Error(absl::StrCat(
        "\"", lie, "\" is not known; allowed are not-exportable, not-importable, dedicated-only"));
  }
  return absl::OkStatus();
}

absl::Status ReadFault(LineReader& line, DevicePlan& device) {
  HB_ASSIGN_OR_RETURN(const FaultRule rule, ReadFaultRule(line));
  if (IsOfInstance(rule.function)) {
    return line.Error(absl::StrCat(FunctionName(rule.function),
                                   " is called before there are devices; its rules belong in "
                                   "front of the first device"));
  }
  device.faults.push_back(rule);
  return absl::OkStatus();
}

using ReadRest = absl::Status (*)(LineReader&, DevicePlan&);

const std::map<absl::string_view, ReadRest>& Directives() {
  static const auto* const directives = new std::map<absl::string_view, ReadRest>{
      {"deviceName", ReadName},
      {"deviceType", ReadType},
      {"deviceUUID", ReadDeviceUuid},
      {"driverUUID", ReadDriverUuid},
      {"driverID", ReadDriverId},
      {"real_device", ReadRealDevice},
      {"mode", ReadMode},
      {"memoryHeap", ReadHeap},
      {"memoryType", ReadMemoryType},
      {"queueFamily", ReadQueueFamily},
      {"enforce", ReadEnforce},
      {"pad", ReadPadding},
      {"fresh_memory", ReadFreshMemory},
      {"maxMemoryAllocationCount", ReadMaxAllocationCount},
      {"maxMemoryAllocationSize", ReadMaxAllocationSize},
      {"maxBufferSize", ReadMaxBufferSize},
      {"largest_real_allocation", ReadLargestRealAllocation},
      {"heapBudget", ReadBudget},
      {"hide", ReadHide},
      {"add", ReadAdd},
      {"external", ReadExternal},
      {"fault", ReadFault}};
  return *directives;
}

}  // namespace

absl::Status ReadDeviceLine(absl::string_view keyword, LineReader& line, DevicePlan& device) {
  const auto found = Directives().find(keyword);
  if (found == Directives().end()) {
    return line.Error(absl::StrCat("\"", keyword, "\" says nothing about a device; allowed are ",
                                   DeviceKeywords(), ", and device for the next one"));
  }
  return found->second(line, device);
}

std::string DeviceKeywords() {
  return absl::StrJoin(Directives(), ", ", [](std::string* out, const auto& directive) {
    absl::StrAppend(out, directive.first);
  });
}

absl::Status CheckDevice(const DevicePlan& device) {
  if (device.heaps.empty() != device.memory_types.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", device.name,
                     " has heaps without memory types, or types without heaps; give both, or "
                     "none to keep the driver's"));
  }
  for (const MemoryTypePlan& type : device.memory_types) {
    if (type.heap < device.heaps.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("device ", device.name,
                                                   " has a memory type in heap ", type.heap,
                                                   " and only ", device.heaps.size(), " heaps"));
  }
  for (const auto& [heap, budget] : device.budgets) {
    if (device.heaps.empty() || heap < device.heaps.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("device ", device.name, " has a budget of heap ",
                                                   heap, " and only ", device.heaps.size(),
                                                   " heaps"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FaultRule> ReadFaultRule(LineReader& line) {
  HB_ASSIGN_OR_RETURN(const std::string word, line.Word("a rule"));
  absl::StatusOr<FaultRule> rule = ParseFaultRule(word);
  if (!rule.ok()) return line.At(rule.status());
  return rule;
}

}  // namespace heapbroker::faults

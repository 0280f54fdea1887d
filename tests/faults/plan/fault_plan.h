// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the fault layer is told to do, as plain values.
#ifndef TESTS_FAULTS_PLAN_FAULT_PLAN_H_
#define TESTS_FAULTS_PLAN_FAULT_PLAN_H_

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "heapbroker/units.h"
#include "tests/faults/plan/function.h"

namespace heapbroker::faults {

// Calls by their number, counted from 1; both ends included.
struct Ordinals {
  uint64_t first = 1;
  uint64_t last = std::numeric_limits<uint64_t>::max();
  bool Contains(uint64_t ordinal) const { return first <= ordinal && ordinal <= last; }
};

// Instead of the driver's answer; the driver is not asked.
struct Fail {
  VkResult result = VK_ERROR_UNKNOWN;
};
// An import that fails, and what becomes of its descriptor: drivers disagree.
struct FailImport {
  VkResult result = VK_ERROR_INVALID_EXTERNAL_HANDLE;
  bool close = false;
};
// Before whatever else happens.
struct Delay {
  absl::Duration duration;
};
// Until the process ends.
struct Hang {};

using FaultAction = std::variant<Fail, FailImport, Delay, Hang>;

struct FaultRule {
  Function function = Function::kAllocateMemory;
  Ordinals when;
  FaultAction action;
};

struct HeapPlan {
  Bytes size;
  VkMemoryHeapFlags flags = 0;
};

struct QueueFamilyPlan {
  VkQueueFlags flags = 0;
  uint32_t queues = 1;
  friend bool operator==(const QueueFamilyPlan&, const QueueFamilyPlan&) = default;
};
struct MemoryTypePlan {
  uint32_t heap = 0;
  VkMemoryPropertyFlags flags = 0;
  uint32_t real_type = 0;  // The driver's type that stands behind it.
};

// Required sizes are rounded up to `granularity`, and `extra` is added.
struct Padding {
  Bytes granularity = Bytes(1);
  Bytes extra;
};

struct BudgetPlan {
  Bytes budget;
  std::optional<Bytes> usage;  // Unset: what is really allocated.
};

struct ExternalPlan {
  bool exportable = true;
  bool importable = true;
  bool dedicated_only = false;
};

using PlannedUuid = std::array<uint8_t, VK_UUID_SIZE>;

// One device that the layer shows. What is unset or empty is as the driver says.
struct DevicePlan {
  std::string name;           // Of the section, for reports.
  uint32_t real_device = 0;   // Which of the driver's devices stands behind it.
  bool every_device = false;  // Each of them, as it is: a plan without sections.
  bool strict = true;         // A caller that passes a limit is reported and refused.

  std::optional<std::string> device_name;
  std::optional<VkPhysicalDeviceType> device_type;
  std::optional<PlannedUuid> device_uuid;
  std::optional<PlannedUuid> driver_uuid;
  std::optional<VkDriverId> driver_id;

  std::vector<HeapPlan> heaps;  // Empty exactly if memory_types is.
  std::vector<MemoryTypePlan> memory_types;
  // The driver's first queue stands behind all of their queues. Empty: the driver's
  // families.
  std::vector<QueueFamilyPlan> queue_families;
  bool enforce_heaps = false;  // A full heap refuses, as most hardware does.
  std::optional<Padding> padding;
  std::optional<uint8_t> fresh_memory;  // What each byte of new memory holds.

  std::optional<uint32_t> max_allocation_count;
  std::optional<Bytes> max_allocation_size;
  std::optional<Bytes> max_buffer_size;
  std::optional<Bytes> largest_real_allocation;  // Larger ones fail, whatever is advertised.
  std::map<uint32_t, BudgetPlan> budgets;        // By heap.

  std::set<std::string> hidden_extensions;
  std::set<std::string> added_extensions;
  std::map<VkExternalMemoryHandleTypeFlagBits, ExternalPlan> external;

  std::vector<FaultRule> faults;  // Calls on this device only.
};

struct FaultPlan {
  std::string report;  // Path; empty: none is written.
  bool abort_on_violation = false;
  std::vector<FaultRule> faults;    // Calls on all devices together.
  std::vector<DevicePlan> devices;  // Never empty.
};

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_FAULT_PLAN_H_

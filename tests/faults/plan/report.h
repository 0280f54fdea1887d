// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the fault layer counted, and the file that says so.
#ifndef TESTS_FAULTS_PLAN_REPORT_H_
#define TESTS_FAULTS_PLAN_REPORT_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/faults/plan/function.h"

namespace heapbroker::faults {

// Of one device section, over all VkDevices made from it.
struct DeviceCounters {
  std::array<uint64_t, kFunctionCount> calls{};  // By Function.
  uint64_t faults = 0;                           // Calls that a rule broke or delayed.
  uint64_t live_allocations = 0;                 // Imports too.
  uint64_t peak_allocations = 0;
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t live_buffers = 0;
  uint64_t live_fences = 0;
  uint64_t live_command_pools = 0;
  uint64_t live_devices = 0;
  uint64_t exported_descriptors = 0;             // Since the beginning.
  std::map<uint32_t, uint64_t> live_heap_bytes;  // By heap.

  uint64_t CallsOf(Function function) const { return calls[static_cast<size_t>(function)]; }
};

struct Report {
  uint64_t pid = 0;
  uint64_t instances = 0;  // Calls of vkCreateInstance.
  std::map<std::string, DeviceCounters> devices;
  // What callers did that Vulkan forbids, and what they left behind: the first
  // kMaxViolations of them in words, all of them in the count.
  uint64_t violation_count = 0;
  std::vector<std::string> violations;

  static constexpr size_t kMaxViolations = 32;
};

// As text, one "KEY VALUE" or "device NAME KEY VALUE" a line, `sequence` in the
// first and in the last.
std::string FormatReport(const Report& report, uint64_t sequence);

//   UNAVAILABLE       not a whole report: the writer is at work
//   INVALID_ARGUMENT  no report
absl::StatusOr<Report> ParseReport(absl::string_view text);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_REPORT_H_

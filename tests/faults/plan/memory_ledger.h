// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What is alive on one VkDevice, and what it does not allow.
#ifndef TESTS_FAULTS_PLAN_MEMORY_LEDGER_H_
#define TESTS_FAULTS_PLAN_MEMORY_LEDGER_H_

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/faults/plan/fault_plan.h"

namespace heapbroker::faults {

// An answer that the driver is not asked for.
struct Refusal {
  VkResult result = VK_ERROR_UNKNOWN;
  // What the caller did that Vulkan forbids; empty where only the device is full
  // or limited.
  std::string violation;
};

// One vkAllocateMemory, as far as limits go.
struct AllocationRequest {
  uint32_t type = 0;  // As the caller named it.
  VkDeviceSize size = 0;
  bool import = false;
  bool dedicated = false;  // VkMemoryDedicatedAllocateInfo names a buffer or image.
  // Of an import, the handle's type; else those of VkExportMemoryAllocateInfo.
  VkExternalMemoryHandleTypeFlags handles = 0;
};

struct LiveMemory {
  uint32_t type = 0;
  VkDeviceSize size = 0;
};

// The driver's side of a device's limits: checks what callers promise to keep. A
// lenient device lets pass what a strict one reports. Not thread-safe.
class MemoryLedger {
 public:
  // `memory` is what the device shows, with the plan's lies in it. `plan` must
  // outlive the ledger.
  MemoryLedger(const DevicePlan& plan, const VkPhysicalDeviceMemoryProperties& memory);

  // Unset: the driver may be asked, and the allocation counts from now on; then
  // comes Add or Cancel.
  std::optional<Refusal> Begin(const AllocationRequest& request);
  void Add(const AllocationRequest& request, VkDeviceMemory memory);
  void Cancel(const AllocationRequest& request) { End({request.type, request.size}); }

  // The driver is about to free it: the handle is dead, since the driver may give
  // it to the next allocation at any moment, but the memory counts until End.
  // Unset if it is not alive.
  std::optional<LiveMemory> BeginFree(VkDeviceMemory memory);
  void End(const LiveMemory& memory);

  // Whether memory may be mapped.
  std::optional<Refusal> CheckMapping(VkDeviceMemory memory) const;
  // Whether `required` bytes of a buffer, already padded, lie in the memory.
  std::optional<Refusal> CheckBinding(VkDeviceMemory memory, VkDeviceSize offset,
                                      VkDeviceSize required) const;
  std::optional<Refusal> CheckBuffer(VkDeviceSize size) const;

  // Of all that counts, also while the driver makes or frees it.
  uint64_t count() const { return count_; }
  VkDeviceSize bytes() const { return bytes_; }
  VkDeviceSize HeapBytes(uint32_t heap) const { return heap_bytes_[heap]; }
  uint32_t HeapOf(uint32_t type) const { return memory_.memoryTypes[type].heapIndex; }

 private:
  std::optional<Refusal> CheckPromises(const AllocationRequest& request) const;
  std::optional<Refusal> CheckHandles(const AllocationRequest& request) const;
  std::optional<Refusal> CheckRoom(const AllocationRequest& request) const;

  const DevicePlan& plan_;
  const VkPhysicalDeviceMemoryProperties memory_;
  std::map<VkDeviceMemory, LiveMemory> live_;
  uint64_t count_ = 0;
  VkDeviceSize bytes_ = 0;
  std::array<VkDeviceSize, VK_MAX_MEMORY_HEAPS> heap_bytes_{};
};

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_MEMORY_LEDGER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/memory_ledger.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/faults/plan/lies.h"

namespace heapbroker::faults {
namespace {

Refusal Violation(VkResult result, std::string text) { return {result, std::move(text)}; }
Refusal Limit(VkResult result) { return {result, ""}; }

}  // namespace

MemoryLedger::MemoryLedger(const DevicePlan& plan, const VkPhysicalDeviceMemoryProperties& memory)
    : plan_(plan), memory_(memory) {}

std::optional<Refusal> MemoryLedger::Begin(const AllocationRequest& request) {
  // Whatever the mode: there is nothing to ask the driver for.
  if (request.type >= memory_.memoryTypeCount) {
    return Violation(VK_ERROR_OUT_OF_DEVICE_MEMORY,
                     absl::StrCat("vkAllocateMemory asked for memory type ", request.type,
                                  " of a device with ", memory_.memoryTypeCount));
  }
  if (plan_.strict) {
    if (std::optional<Refusal> refusal = CheckPromises(request)) return refusal;
  }
  if (std::optional<Refusal> refusal = CheckRoom(request)) return refusal;
  ++count_;
  bytes_ += request.size;
  heap_bytes_[HeapOf(request.type)] += request.size;
  return std::nullopt;
}

void MemoryLedger::Add(const AllocationRequest& request, VkDeviceMemory memory) {
  live_[memory] = {request.type, request.size};
}

std::optional<LiveMemory> MemoryLedger::BeginFree(VkDeviceMemory memory) {
  const auto found = live_.find(memory);
  if (found == live_.end()) return std::nullopt;
  const LiveMemory live = found->second;
  live_.erase(found);
  return live;
}

void MemoryLedger::End(const LiveMemory& memory) {
  --count_;
  bytes_ -= memory.size;
  heap_bytes_[HeapOf(memory.type)] -= memory.size;
}

std::optional<Refusal> MemoryLedger::CheckPromises(const AllocationRequest& request) const {
  if (plan_.max_allocation_count && count_ >= *plan_.max_allocation_count) {
    return Violation(
        VK_ERROR_TOO_MANY_OBJECTS,
        absl::StrCat("the driver saw allocation number ", count_ + 1,
                     " of a device with maxMemoryAllocationCount ", *plan_.max_allocation_count));
  }
  const VkDeviceSize heap_size = memory_.memoryHeaps[HeapOf(request.type)].size;
  if (request.size == 0 || request.size > heap_size) {
    return Violation(VK_ERROR_OUT_OF_DEVICE_MEMORY,
                     absl::StrCat("vkAllocateMemory asked for ", request.size,
                                  " bytes in a heap of ", heap_size));
  }
  return CheckHandles(request);
}

std::optional<Refusal> MemoryLedger::CheckHandles(const AllocationRequest& request) const {
  for (const auto& [handle, external] : plan_.external) {
    if ((request.handles & handle) == 0) continue;
    const bool possible = request.import ? external.importable : external.exportable;
    if (!possible || (external.dedicated_only && !request.dedicated)) {
      return Violation(
          request.import ? VK_ERROR_INVALID_EXTERNAL_HANDLE : VK_ERROR_OUT_OF_DEVICE_MEMORY,
          absl::StrCat("vkAllocateMemory ", request.import ? "imports" : "exports",
                       " a type of handle that the device ",
                       possible ? "has for dedicated memory only" : "does not have"));
    }
  }
  return std::nullopt;
}

std::optional<Refusal> MemoryLedger::CheckRoom(const AllocationRequest& request) const {
  const bool opaque = (request.handles & VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) != 0;
  if (request.import && opaque && !IsPaddedSize(plan_, request.size)) {
    return Limit(VK_ERROR_INVALID_EXTERNAL_HANDLE);
  }
  if (plan_.strict && plan_.max_allocation_size &&
      request.size > plan_.max_allocation_size->count()) {
    return Limit(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  }
  if (plan_.largest_real_allocation && request.size > plan_.largest_real_allocation->count()) {
    return Limit(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  }
  if (plan_.enforce_heaps && !request.import) {
    const uint32_t heap = HeapOf(request.type);
    const VkDeviceSize size = memory_.memoryHeaps[heap].size;
    const VkDeviceSize taken = HeapBytes(heap);
    if (taken >= size || request.size > size - taken) return Limit(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  }
  return std::nullopt;
}

std::optional<Refusal> MemoryLedger::CheckMapping(VkDeviceMemory memory) const {
  const auto found = live_.find(memory);
  if (found == live_.end()) {
    return Violation(VK_ERROR_MEMORY_MAP_FAILED, "vkMapMemory of memory that is not alive");
  }
  const VkMemoryType& type = memory_.memoryTypes[found->second.type];
  if (!plan_.strict || (type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
    return std::nullopt;
  }
  return Violation(VK_ERROR_MEMORY_MAP_FAILED,
                   absl::StrCat("vkMapMemory of memory type ", found->second.type,
                                ", which is not host-visible"));
}

std::optional<Refusal> MemoryLedger::CheckBinding(VkDeviceMemory memory, VkDeviceSize offset,
                                                  VkDeviceSize required) const {
  const auto found = live_.find(memory);
  if (found == live_.end()) {
    return Violation(VK_ERROR_OUT_OF_DEVICE_MEMORY,
                     "vkBindBufferMemory of memory that is not alive");
  }
  const VkDeviceSize size = found->second.size;
  if (!plan_.strict || (offset <= size && required <= size - offset)) return std::nullopt;
  return Violation(VK_ERROR_OUT_OF_DEVICE_MEMORY,
                   absl::StrCat("vkBindBufferMemory of a buffer that needs ", required,
                                " bytes to memory of ", size, " at ", offset));
}

std::optional<Refusal> MemoryLedger::CheckBuffer(VkDeviceSize size) const {
  if (!plan_.strict || !plan_.max_buffer_size || size <= plan_.max_buffer_size->count()) {
    return std::nullopt;
  }
  return Violation(
      VK_ERROR_OUT_OF_DEVICE_MEMORY,
      absl::StrCat("vkCreateBuffer of ", size, " bytes on a device with maxBufferSize ",
                   plan_.max_buffer_size->count()));
}

}  // namespace heapbroker::faults

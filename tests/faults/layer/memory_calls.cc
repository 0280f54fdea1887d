// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <cstring>
#include <optional>

#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/chains.h"
#include "tests/faults/layer/objects.h"
#include "tests/faults/plan/lies.h"

namespace heapbroker::faults {
namespace {

const VkImportMemoryFdInfoKHR* FindImport(const VkMemoryAllocateInfo& info) {
  return FindInChain<VkImportMemoryFdInfoKHR>(info.pNext,
                                              VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
}

AllocationRequest Describe(const VkMemoryAllocateInfo& info) {
  AllocationRequest request;
  request.type = info.memoryTypeIndex;
  request.size = info.allocationSize;
  if (const VkImportMemoryFdInfoKHR* const import = FindImport(info)) {
    request.import = true;
    request.handles = import->handleType;
  } else if (const auto* const exported = FindInChain<VkExportMemoryAllocateInfo>(
                 info.pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO)) {
    request.handles = exported->handleTypes;
  }
  const auto* const dedicated = FindInChain<VkMemoryDedicatedAllocateInfo>(
      info.pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO);
  request.dedicated = dedicated != nullptr &&
                      (dedicated->buffer != VK_NULL_HANDLE || dedicated->image != VK_NULL_HANDLE);
  return request;
}

// What a rule makes of the call; an import is counted as one and as an allocation.
std::optional<Broken> OnAllocation(Device& device, const VkImportMemoryFdInfoKHR* import) {
  std::optional<Broken> broken = device.OnCall(Function::kAllocateMemory);
  if (import == nullptr) return broken;
  const std::optional<Broken> broken_import = device.OnCall(Function::kImport);
  return broken ? broken : broken_import;
}

// New memory holds what somebody left in it, on some hardware. Quietly nothing
// where the driver cannot map it.
void LeaveTraces(Device& device, VkDeviceMemory memory, VkDeviceSize size) {
  void* bytes = nullptr;
  if (device.next().MapMemory(device.handle(), memory, 0, VK_WHOLE_SIZE, 0, &bytes) != VK_SUCCESS) {
    return;
  }
  std::memset(bytes, *device.plan().fresh_memory, size);
  device.next().UnmapMemory(device.handle(), memory);
}

VkResult AllocateMemory(VkDevice handle, const VkMemoryAllocateInfo* info,
                        const VkAllocationCallbacks* allocator, VkDeviceMemory* memory) {
  Device& device = DeviceOf(handle);
  const VkImportMemoryFdInfoKHR* const import = FindImport(*info);
  if (const auto broken = OnAllocation(device, import)) {
    if (broken->close_descriptor) close(import->fd);
    return broken->result;
  }
  const AllocationRequest request = Describe(*info);
  const auto begin = [&](MemoryLedger& ledger) { return ledger.Begin(request); };
  if (const auto refused = device.Ask(begin)) return *refused;
  VkMemoryAllocateInfo real = *info;
  real.memoryTypeIndex = RealType(device.plan(), info->memoryTypeIndex);
  const VkResult result = device.next().AllocateMemory(handle, &real, allocator, memory);
  if (result != VK_SUCCESS) {
    device.CancelAllocation(request);
    return result;
  }
  if (device.plan().fresh_memory && import == nullptr) LeaveTraces(device, *memory, request.size);
  device.EndAllocation(request, *memory);
  return result;
}

void FreeMemory(VkDevice handle, VkDeviceMemory memory, const VkAllocationCallbacks* allocator) {
  if (memory == VK_NULL_HANDLE) return;
  Device& device = DeviceOf(handle);
  device.OnCall(Function::kFreeMemory);
  const std::optional<LiveMemory> live = device.BeginFree(memory);
  if (!live) return;
  device.next().FreeMemory(handle, memory, allocator);
  device.EndFree(*live);
}

VkResult MapMemory(VkDevice handle, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,
                   VkMemoryMapFlags flags, void** bytes) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kMapMemory)) return broken->result;
  const auto check = [&](const MemoryLedger& ledger) { return ledger.CheckMapping(memory); };
  if (const auto refused = device.Ask(check)) return *refused;
  return device.next().MapMemory(handle, memory, offset, size, flags, bytes);
}

VkResult GetMemoryFdKHR(VkDevice handle, const VkMemoryGetFdInfoKHR* info, int* fd) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kGetMemoryFd)) return broken->result;
  const VkResult result = device.next().GetMemoryFdKHR(handle, info, fd);
  if (result == VK_SUCCESS && *fd >= 0) device.CountExport();
  return result;
}

VkResult GetMemoryFdPropertiesKHR(VkDevice handle, VkExternalMemoryHandleTypeFlagBits type, int fd,
                                  VkMemoryFdPropertiesKHR* properties) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kGetMemoryFdProperties)) return broken->result;
  const VkResult result = device.next().GetMemoryFdPropertiesKHR(handle, type, fd, properties);
  properties->memoryTypeBits = PlannedTypeBits(device.plan(), properties->memoryTypeBits);
  return result;
}

VkResult GetMemoryHostPointerPropertiesEXT(VkDevice handle, VkExternalMemoryHandleTypeFlagBits type,
                                           const void* bytes,
                                           VkMemoryHostPointerPropertiesEXT* properties) {
  const Device& device = DeviceOf(handle);
  const VkResult result =
      device.next().GetMemoryHostPointerPropertiesEXT(handle, type, bytes, properties);
  properties->memoryTypeBits = PlannedTypeBits(device.plan(), properties->memoryTypeBits);
  return result;
}

}  // namespace

absl::Span<const EntryPoint> MemoryCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(AllocateMemory),
      HB_ENTRY(FreeMemory),
      HB_ENTRY(MapMemory),
      HB_ENTRY(GetMemoryFdKHR),
      HB_ENTRY(GetMemoryFdPropertiesKHR),
      HB_ENTRY(GetMemoryHostPointerPropertiesEXT),
  };
  return kCalls;
}

}  // namespace heapbroker::faults

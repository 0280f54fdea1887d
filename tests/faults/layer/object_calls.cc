// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <vulkan/vulkan.h>

#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/objects.h"
#include "tests/faults/plan/lies.h"

namespace heapbroker::faults {
namespace {

VkResult CreateBuffer(VkDevice handle, const VkBufferCreateInfo* info,
                      const VkAllocationCallbacks* allocator, VkBuffer* buffer) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kCreateBuffer)) return broken->result;
  const auto check = [&](const MemoryLedger& ledger) { return ledger.CheckBuffer(info->size); };
  if (const auto refused = device.Ask(check)) return *refused;
  const VkResult result = device.next().CreateBuffer(handle, info, allocator, buffer);
  if (result == VK_SUCCESS) device.CountObject(Device::Kind::kBuffer, 1);
  return result;
}

void DestroyBuffer(VkDevice handle, VkBuffer buffer, const VkAllocationCallbacks* allocator) {
  if (buffer == VK_NULL_HANDLE) return;
  Device& device = DeviceOf(handle);
  device.next().DestroyBuffer(handle, buffer, allocator);
  device.CountObject(Device::Kind::kBuffer, -1);
}

// Unset: the driver may bind it.
std::optional<VkResult> OnBinding(Device& device, VkBuffer buffer, VkDeviceMemory memory,
                                  VkDeviceSize offset) {
  if (const auto broken = device.OnCall(Function::kBindBufferMemory)) return broken->result;
  VkMemoryRequirements required{};
  device.next().GetBufferMemoryRequirements(device.handle(), buffer, &required);
  const VkDeviceSize size = PaddedSize(device.plan(), required.size);
  return device.Ask(
      [&](const MemoryLedger& ledger) { return ledger.CheckBinding(memory, offset, size); });
}

VkResult BindBufferMemory(VkDevice handle, VkBuffer buffer, VkDeviceMemory memory,
                          VkDeviceSize offset) {
  Device& device = DeviceOf(handle);
  if (const auto refused = OnBinding(device, buffer, memory, offset)) return *refused;
  return device.next().BindBufferMemory(handle, buffer, memory, offset);
}

VkResult BindBufferMemory2(VkDevice handle, uint32_t count, const VkBindBufferMemoryInfo* infos) {
  Device& device = DeviceOf(handle);
  for (uint32_t i = 0; i < count; ++i) {
    const VkBindBufferMemoryInfo& info = infos[i];
    if (const auto refused = OnBinding(device, info.buffer, info.memory, info.memoryOffset)) {
      return *refused;
    }
  }
  return device.next().BindBufferMemory2(handle, count, infos);
}

VkResult CreateFence(VkDevice handle, const VkFenceCreateInfo* info,
                     const VkAllocationCallbacks* allocator, VkFence* fence) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kCreateFence)) return broken->result;
  const VkResult result = device.next().CreateFence(handle, info, allocator, fence);
  if (result == VK_SUCCESS) device.CountObject(Device::Kind::kFence, 1);
  return result;
}

void DestroyFence(VkDevice handle, VkFence fence, const VkAllocationCallbacks* allocator) {
  if (fence == VK_NULL_HANDLE) return;
  Device& device = DeviceOf(handle);
  device.next().DestroyFence(handle, fence, allocator);
  device.CountObject(Device::Kind::kFence, -1);
}

VkResult CreateCommandPool(VkDevice handle, const VkCommandPoolCreateInfo* info,
                           const VkAllocationCallbacks* allocator, VkCommandPool* pool) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kCreateCommandPool)) return broken->result;
  VkCommandPoolCreateInfo real = *info;
  real.queueFamilyIndex = device.RealFamily(info->queueFamilyIndex);
  const VkResult result = device.next().CreateCommandPool(handle, &real, allocator, pool);
  if (result == VK_SUCCESS) device.CountObject(Device::Kind::kCommandPool, 1);
  return result;
}

void DestroyCommandPool(VkDevice handle, VkCommandPool pool,
                        const VkAllocationCallbacks* allocator) {
  if (pool == VK_NULL_HANDLE) return;
  Device& device = DeviceOf(handle);
  device.next().DestroyCommandPool(handle, pool, allocator);
  device.CountObject(Device::Kind::kCommandPool, -1);
}

}  // namespace

absl::Span<const EntryPoint> ObjectCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(CreateBuffer),      HB_ENTRY(DestroyBuffer),
      HB_ENTRY(BindBufferMemory),  HB_PROMOTED_ENTRY(BindBufferMemory2),
      HB_ENTRY(CreateFence),       HB_ENTRY(DestroyFence),
      HB_ENTRY(CreateCommandPool), HB_ENTRY(DestroyCommandPool),
  };
  return kCalls;
}

}  // namespace heapbroker::faults

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <vulkan/vulkan.h>

#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/objects.h"

namespace heapbroker::faults {
namespace {

VkResult QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
  Device& device = DeviceOf(queue);
  if (const auto broken = device.OnCall(Function::kQueueSubmit)) return broken->result;
  return device.OnQueue(
      queue, [&](VkQueue real) { return device.next().QueueSubmit(real, count, submits, fence); });
}

VkResult QueueSubmit2(VkQueue queue, uint32_t count, const VkSubmitInfo2* submits, VkFence fence) {
  Device& device = DeviceOf(queue);
  if (const auto broken = device.OnCall(Function::kQueueSubmit)) return broken->result;
  return device.OnQueue(
      queue, [&](VkQueue real) { return device.next().QueueSubmit2(real, count, submits, fence); });
}

VkResult QueueBindSparse(VkQueue queue, uint32_t count, const VkBindSparseInfo* infos,
                         VkFence fence) {
  Device& device = DeviceOf(queue);
  return device.OnQueue(queue, [&](VkQueue real) {
    return device.next().QueueBindSparse(real, count, infos, fence);
  });
}

VkResult QueueWaitIdle(VkQueue queue) {
  Device& device = DeviceOf(queue);
  if (const auto broken = device.OnCall(Function::kQueueWaitIdle)) return broken->result;
  return device.OnQueue(queue, [&](VkQueue real) { return device.next().QueueWaitIdle(real); });
}

VkResult DeviceWaitIdle(VkDevice handle) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kDeviceWaitIdle)) return broken->result;
  return device.next().DeviceWaitIdle(handle);
}

VkResult WaitForFences(VkDevice handle, uint32_t count, const VkFence* fences, VkBool32 all,
                       uint64_t timeout) {
  Device& device = DeviceOf(handle);
  if (const auto broken = device.OnCall(Function::kWaitForFences)) return broken->result;
  return device.next().WaitForFences(handle, count, fences, all, timeout);
}

}  // namespace

absl::Span<const EntryPoint> QueueCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(QueueSubmit),    HB_PROMOTED_ENTRY(QueueSubmit2), HB_ENTRY(QueueWaitIdle),
      HB_ENTRY(DeviceWaitIdle), HB_ENTRY(WaitForFences),         HB_ENTRY(QueueBindSparse),
  };
  return kCalls;
}

}  // namespace heapbroker::faults

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <vulkan/vulkan.h>

#include <vector>

#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/objects.h"

namespace heapbroker::faults {
namespace {

void GetDeviceQueue(VkDevice handle, uint32_t family, uint32_t index, VkQueue* queue) {
  Device& device = DeviceOf(handle);
  if (!device.has_planned_queues()) {
    device.next().GetDeviceQueue(handle, family, index, queue);
    return;
  }
  Queue* const planned = device.QueueOf(family, index);
  *queue = planned != nullptr ? planned->handle() : VK_NULL_HANDLE;
}

void GetDeviceQueue2(VkDevice handle, const VkDeviceQueueInfo2* info, VkQueue* queue) {
  Device& device = DeviceOf(handle);
  if (device.has_planned_queues()) {
    GetDeviceQueue(handle, info->queueFamilyIndex, info->queueIndex, queue);
  } else {
    device.next().GetDeviceQueue2(handle, info, queue);
  }
}

// Barriers as the driver is to see them: between planned families nothing changes hands.
template <typename Barrier>
std::vector<Barrier> WithRealFamilies(const Device& device, uint32_t count,
                                      const Barrier* barriers) {
  std::vector<Barrier> real(barriers, barriers + count);
  for (Barrier& barrier : real) {
    barrier.srcQueueFamilyIndex = device.RealFamily(barrier.srcQueueFamilyIndex);
    barrier.dstQueueFamilyIndex = device.RealFamily(barrier.dstQueueFamilyIndex);
  }
  return real;
}

void CmdPipelineBarrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                        VkPipelineStageFlags to, VkDependencyFlags flags, uint32_t memory_count,
                        const VkMemoryBarrier* memory, uint32_t buffer_count,
                        const VkBufferMemoryBarrier* buffers, uint32_t image_count,
                        const VkImageMemoryBarrier* images) {
  Device& device = DeviceOf(commands);
  const auto real_buffers = WithRealFamilies(device, buffer_count, buffers);
  const auto real_images = WithRealFamilies(device, image_count, images);
  device.next().CmdPipelineBarrier(commands, from, to, flags, memory_count, memory, buffer_count,
                                   real_buffers.data(), image_count, real_images.data());
}

void CmdPipelineBarrier2(VkCommandBuffer commands, const VkDependencyInfo* info) {
  Device& device = DeviceOf(commands);
  const auto buffers =
      WithRealFamilies(device, info->bufferMemoryBarrierCount, info->pBufferMemoryBarriers);
  const auto images =
      WithRealFamilies(device, info->imageMemoryBarrierCount, info->pImageMemoryBarriers);
  VkDependencyInfo real = *info;
  real.pBufferMemoryBarriers = buffers.data();
  real.pImageMemoryBarriers = images.data();
  device.next().CmdPipelineBarrier2(commands, &real);
}

}  // namespace

absl::Span<const EntryPoint> QueueFamilyCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(GetDeviceQueue),
      HB_ENTRY(GetDeviceQueue2),
      HB_ENTRY(CmdPipelineBarrier),
      HB_PROMOTED_ENTRY(CmdPipelineBarrier2),
  };
  return kCalls;
}

}  // namespace heapbroker::faults

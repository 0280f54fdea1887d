// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/one_shot.h"

#include <cstdint>

#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

// What one submission needs; destroyed together.
class OneShot {
 public:
  explicit OneShot(VkDevice device) : device_(device) {}
  ~OneShot() {
    vkDestroyFence(device_, fence_, nullptr);
    vkDestroyCommandPool(device_, pool_, nullptr);
  }
  OneShot(const OneShot&) = delete;
  OneShot& operator=(const OneShot&) = delete;

  absl::Status Begin(uint32_t queue_family) {
    const VkFenceCreateInfo fence_info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    HB_RETURN_IF_ERROR(
        VulkanStatus(vkCreateFence(device_, &fence_info, nullptr, &fence_), "vkCreateFence"));
    const VkCommandPoolCreateInfo pool_info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                            .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                            .queueFamilyIndex = queue_family};
    HB_RETURN_IF_ERROR(VulkanStatus(vkCreateCommandPool(device_, &pool_info, nullptr, &pool_),
                                    "vkCreateCommandPool"));
    const VkCommandBufferAllocateInfo allocate_info{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool_,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    HB_RETURN_IF_ERROR(VulkanStatus(vkAllocateCommandBuffers(device_, &allocate_info, &commands_),
                                    "vkAllocateCommandBuffers"));
    const VkCommandBufferBeginInfo begin_info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                              .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    return VulkanStatus(vkBeginCommandBuffer(commands_, &begin_info), "vkBeginCommandBuffer");
  }

  absl::Status SubmitAndWait(VkQueue queue) {
    HB_RETURN_IF_ERROR(VulkanStatus(vkEndCommandBuffer(commands_), "vkEndCommandBuffer"));
    const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                              .commandBufferCount = 1,
                              .pCommandBuffers = &commands_};
    HB_RETURN_IF_ERROR(VulkanStatus(vkQueueSubmit(queue, 1, &submit, fence_), "vkQueueSubmit"));
    const VkResult waited = vkWaitForFences(device_, 1, &fence_, VK_TRUE, UINT64_MAX);
    // The commands may still be running, and neither they nor what they use may be
    // destroyed then. Of a lost device nothing runs on.
    if (waited != VK_SUCCESS) vkQueueWaitIdle(queue);
    return VulkanStatus(waited, "vkWaitForFences");
  }

  VkCommandBuffer commands() const { return commands_; }

 private:
  const VkDevice device_;
  VkFence fence_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace

absl::Status RunOnce(const VulkanContext& context,
                     absl::FunctionRef<void(VkCommandBuffer)> record) {
  OneShot shot(context.device);
  HB_RETURN_IF_ERROR(shot.Begin(context.queue_family));
  record(shot.commands());
  return shot.SubmitAndWait(context.queue);
}

}  // namespace heapbroker

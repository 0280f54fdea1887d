// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/copy_commands.h"

#include <utility>

#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<std::unique_ptr<CopyCommands>> CopyCommands::Create(const CopyQueue& queue) {
  std::unique_ptr<CopyCommands> made(new CopyCommands(queue));
  const VkFenceCreateInfo fence_info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  HB_RETURN_IF_ERROR(VulkanStatus(vkCreateFence(queue.device, &fence_info, nullptr, &made->fence_),
                                  "vkCreateFence"));
  const VkCommandPoolCreateInfo pool_info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                          .queueFamilyIndex = queue.family};
  HB_RETURN_IF_ERROR(VulkanStatus(
      vkCreateCommandPool(queue.device, &pool_info, nullptr, &made->pool_), "vkCreateCommandPool"));
  const VkCommandBufferAllocateInfo allocate_info{
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = made->pool_,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1};
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkAllocateCommandBuffers(queue.device, &allocate_info, &made->commands_),
                   "vkAllocateCommandBuffers"));
  return made;
}

CopyCommands::~CopyCommands() {
  if (process_.forked()) return;
  Wait().IgnoreError();
  vkDestroyFence(queue_.device, fence_, nullptr);
  vkDestroyCommandPool(queue_.device, pool_, nullptr);
}

absl::Status CopyCommands::Submit(absl::FunctionRef<void(VkCommandBuffer)> record) {
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkResetCommandPool(queue_.device, pool_, 0), "vkResetCommandPool"));
  HB_RETURN_IF_ERROR(VulkanStatus(vkResetFences(queue_.device, 1, &fence_), "vkResetFences"));
  const VkCommandBufferBeginInfo begin_info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkBeginCommandBuffer(commands_, &begin_info), "vkBeginCommandBuffer"));
  record(commands_);
  HB_RETURN_IF_ERROR(VulkanStatus(vkEndCommandBuffer(commands_), "vkEndCommandBuffer"));
  const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .commandBufferCount = 1,
                            .pCommandBuffers = &commands_};
  TurnHolder turn(*queue_.turn);
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkQueueSubmit(queue_.queue, 1, &submit, fence_), "vkQueueSubmit"));
  submitted_ = true;
  return absl::OkStatus();
}

absl::Status CopyCommands::Wait() {
  if (!std::exchange(submitted_, false)) return absl::OkStatus();
  const VkResult waited = vkWaitForFences(queue_.device, 1, &fence_, VK_TRUE, UINT64_MAX);
  if (waited != VK_SUCCESS) {
    // The commands may still be running, and neither they nor what they use may be
    // touched then. Of a lost device nothing runs on.
    TurnHolder turn(*queue_.turn);
    vkQueueWaitIdle(queue_.queue);
  }
  return VulkanStatus(waited, "vkWaitForFences");
}

}  // namespace heapbroker

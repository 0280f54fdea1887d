// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/memory_clearer.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "common/base/status_macros.h"
#include "daemon/vulkan/driver_error.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
absl::StatusOr<std::unique_ptr<MemoryClearer>> MemoryClearer::Create(const VulkanDevice& device,
                                                                     ClearPath path) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<MemoryClearer> clearer(new MemoryClearer(device, path));
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool.queueFamilyIndex = device.queue_family();
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkCreateCommandPool(device.handle(), &pool, nullptr, &clearer->pool_),
                     "vkCreateCommandPool"));
  VkCommandBufferAllocateInfo commands{};
  commands.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  commands.commandPool = clearer->pool_;
  commands.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands.commandBufferCount = 1;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkAllocateCommandBuffers(device.handle(), &commands, &clearer->commands_),
                     "vkAllocateCommandBuffers"));
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  HB_RETURN_IF_ERROR(ResultToStatus(
      vkCreateFence(device.handle(), &fence, nullptr, &clearer->fence_), "vkCreateFence"));
  return clearer;
}

MemoryClearer::~MemoryClearer() {
  // Both take VK_NULL_HANDLE; the pool takes its command buffer with it.
  vkDestroyFence(device_.handle(), fence_, nullptr);
  vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

absl::Status MemoryClearer::Clear(const ExportableMemory& memory) {
  if (memory.dedicated_buffer() != nullptr) return Clear(memory, *memory.dedicated_buffer());
  HB_ASSIGN_OR_RETURN(const ExternalBuffer buffer,
                      ExternalBuffer::CreateCovering(
                          device_.handle(), BufferKindOf(memory.block_class()), memory.size()));
  HB_RETURN_IF_ERROR(ResultToStatus(
      vkBindBufferMemory(device_.handle(), buffer.handle(), memory.handle(), /*memoryOffset=*/0),
      "vkBindBufferMemory"));
  return Clear(memory, buffer);
}

absl::Status MemoryClearer::Clear(const ExportableMemory& memory, const ExternalBuffer& buffer) {
  const BlockClass& block_class = memory.block_class();
  const MemoryTypeInfo& type = device_.info().memory_types[block_class.memory_type];
  const bool by_host =
      type.host_visible && (path_ == ClearPath::kMapping || buffer.size() < memory.size());
  if (by_host) HB_RETURN_IF_ERROR(ClearMapped(memory, type.host_coherent));

  HB_RETURN_IF_ERROR(
      ResultToStatus(vkResetCommandPool(device_.handle(), pool_, 0), "vkResetCommandPool"));
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer"));
  if (!by_host) RecordFill(buffer);
  RecordRelease(buffer, block_class.handle_type);
  HB_RETURN_IF_ERROR(ResultToStatus(vkEndCommandBuffer(commands_), "vkEndCommandBuffer"));
  return SubmitAndWait();
}

absl::Status MemoryClearer::ClearMapped(const ExportableMemory& memory, bool coherent) {
  void* mapping = nullptr;
  HB_RETURN_IF_ERROR(DriverStatus(vkMapMemory(device_.handle(), memory.handle(), /*offset=*/0,
                                              VK_WHOLE_SIZE, /*flags=*/0, &mapping),
                                  "vkMapMemory"));
  std::memset(mapping, 0, memory.size().count());
  absl::Status flushed;
  if (!coherent) {
    VkMappedMemoryRange range{};
    range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
    range.memory = memory.handle();
    range.size = VK_WHOLE_SIZE;
    flushed = ResultToStatus(vkFlushMappedMemoryRanges(device_.handle(), 1, &range),
                             "vkFlushMappedMemoryRanges");
  }
  vkUnmapMemory(device_.handle(), memory.handle());
  return flushed;
}

void MemoryClearer::RecordFill(const ExternalBuffer& buffer) {
  constexpr uint64_t kWord = kSmallestClear.count();
  const uint64_t tail = buffer.size().count() % kWord;
  const uint64_t words = buffer.size().count() - tail;
  vkCmdFillBuffer(commands_, buffer.handle(), /*dstOffset=*/0, words, /*data=*/0);
  if (tail == 0) return;
  // A fill writes whole words only; a copy, out of what was just filled, may end
  // anywhere.
  VkMemoryBarrier filled{};
  filled.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  filled.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  filled.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
  vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                       1, &filled, 0, nullptr, 0, nullptr);
  VkBufferCopy copy = {};
  copy.dstOffset = words;
  copy.size = tail;
  vkCmdCopyBuffer(commands_, buffer.handle(), buffer.handle(), 1, &copy);
}

// The same for both ways of clearing: a transfer of ownership cannot name the
// host's stage, and need not, since what the host wrote (and flushed) before a
// submission is visible to it by itself ("host write ordering guarantees").
void MemoryClearer::RecordRelease(const ExternalBuffer& buffer, HandleType handle_type) {
  VkBufferMemoryBarrier release{};
  release.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER;
  release.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  release.srcQueueFamilyIndex = device_.queue_family();
  release.dstQueueFamilyIndex = device_.importers_queue_family(handle_type);
  release.buffer = buffer.handle();
  release.size = VK_WHOLE_SIZE;
  vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr, 1, &release, 0,
                       nullptr);
}

absl::Status MemoryClearer::SubmitAndWait() {
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands_;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkQueueSubmit(device_.queue(), 1, &submit, fence_), "vkQueueSubmit"));
  const VkResult waited =
      vkWaitForFences(device_.handle(), 1, &fence_, VK_TRUE, std::numeric_limits<uint64_t>::max());
  // The commands may still be running, and neither they nor the buffer may be
  // touched then. Of a lost device nothing runs on.
  if (waited != VK_SUCCESS) vkQueueWaitIdle(device_.queue());
  const VkResult reset = vkResetFences(device_.handle(), 1, &fence_);
  HB_RETURN_IF_ERROR(ResultToStatus(waited, "vkWaitForFences"));
  return ResultToStatus(reset, "vkResetFences");
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// vulkan_misuse none|leak|hazard
//
// Uses Vulkan correctly, or wrongly in one way: leaves a buffer behind when the
// device goes, or writes the same bytes twice with nothing in between. No driver
// complains about either, so this exits with 0; the validation layer must. The
// second is seen by its synchronisation checks only.

#include <vulkan/vulkan.h>

#include <cstdio>
#include <cstring>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/device_description.h"
#include "daemon/vulkan/exportable_memory.h"
#include "daemon/vulkan/external_buffer.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
namespace {

enum class Misuse { kNone, kLeak, kHazard };

constexpr Bytes kSize = KiB(64);

absl::Status Leak(VkDevice device) {
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = kSize.count();
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  return ResultToStatus(vkCreateBuffer(device, &create, nullptr, &buffer), "vkCreateBuffer");
}

void RecordFills(VkCommandBuffer commands, VkBuffer buffer, bool in_order) {
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  vkBeginCommandBuffer(commands, &begin);
  vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 1);
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  if (in_order) {
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         0, 1, &barrier, 0, nullptr, 0, nullptr);
  }
  vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 2);
  vkEndCommandBuffer(commands);
}

absl::Status FillTwice(const VulkanDevice& device, bool in_order) {
  const BlockClass block_class = ClassesToTry(device.info()).front();
  HB_ASSIGN_OR_RETURN(const ExternalBuffer buffer,
                      ExternalBuffer::Create(device.handle(), BufferKindOf(block_class), kSize));
  HB_ASSIGN_OR_RETURN(
      const ExportableMemory memory,
      ExportableMemory::Allocate(device, block_class, Bytes(buffer.requirements().size)));
  VkCommandPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  create.queueFamilyIndex = device.queue_family();
  VkCommandPool pool = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(ResultToStatus(vkCreateCommandPool(device.handle(), &create, nullptr, &pool),
                                    "vkCreateCommandPool"));
  VkCommandBufferAllocateInfo command{};
  command.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  command.commandPool = pool;
  command.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(ResultToStatus(vkAllocateCommandBuffers(device.handle(), &command, &commands),
                                    "vkAllocateCommandBuffers"));
  vkBindBufferMemory(device.handle(), buffer.handle(), memory.handle(), 0);
  RecordFills(commands, buffer.handle(), in_order);
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  const VkResult submitted = vkQueueSubmit(device.queue(), 1, &submit, VK_NULL_HANDLE);
  vkQueueWaitIdle(device.queue());
  vkDestroyCommandPool(device.handle(), pool, nullptr);
  return ResultToStatus(submitted, "vkQueueSubmit");
}

absl::Status Run(Misuse misuse) {
  HB_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(DeviceSelector{}));
  if (misuse == Misuse::kLeak) return Leak(opened.device.handle());
  return FillTwice(opened.device, /*in_order=*/misuse == Misuse::kNone);
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) {
  using heapbroker::Misuse;
  Misuse misuse = Misuse::kNone;
  if (argc == 2 && std::strcmp(argv[1], "leak") == 0) {
    misuse = Misuse::kLeak;
  } else if (argc == 2 && std::strcmp(argv[1], "hazard") == 0) {
    misuse = Misuse::kHazard;
  } else if (argc != 2 || std::strcmp(argv[1], "none") != 0) {
    std::fprintf(stderr, "usage: vulkan_misuse none|leak|hazard\n");
    return 2;
  }
  const absl::Status status = heapbroker::Run(misuse);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

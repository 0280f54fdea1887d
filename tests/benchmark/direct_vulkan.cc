// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/direct_vulkan.h"

#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"
#include "vulkan/vulkan.h"

namespace heapbroker {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHandleType =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

absl::Status ExportAndClose(VkDevice device, VkDeviceMemory memory) {
  const auto get_fd =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(device, "vkGetMemoryFdKHR"));
  if (get_fd == nullptr) return absl::FailedPreconditionError("the device exports no descriptors");
  VkMemoryGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  info.memory = memory;
  info.handleType = kHandleType;
  int fd = -1;
  HB_RETURN_IF_ERROR(VulkanStatus(get_fd(device, &info, &fd), "vkGetMemoryFdKHR"));
  const UniqueFd closed_here(fd);
  return absl::OkStatus();
}

}  // namespace

absl::Status AllocateExportFree(const VulkanContext& context, const ImportFacts& block) {
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = kHandleType;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &exported;
  info.allocationSize = block.allocation_size.count();
  info.memoryTypeIndex = block.memory_type_index;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkAllocateMemory(context.device, &info, nullptr, &memory), "vkAllocateMemory"));
  const absl::Status status = ExportAndClose(context.device, memory);
  vkFreeMemory(context.device, memory, nullptr);
  return status;
}

}  // namespace heapbroker

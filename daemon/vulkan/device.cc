// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/device_description.h"
#include "daemon/vulkan/exportable_memory.h"
#include "daemon/vulkan/external_buffer.h"
#include "daemon/vulkan/handle_type.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
namespace {

// The memory types of a buffer follow from its usage and handle types, not from
// its size, so any size answers for all.
constexpr Bytes kProbeSize = KiB(64);

std::vector<const char*> ExtensionsFor(const DeviceSnapshot& snapshot) {
  std::vector<const char*> extensions = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  if (ClaimedHandleTypes(snapshot).usable.dma_buf) {
    extensions.push_back(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  }
  if (snapshot.has_extension(VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME)) {
    extensions.push_back(VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME);
  }
  if (snapshot.buffer_device_address && snapshot.api_version < VK_API_VERSION_1_2) {
    extensions.push_back(VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
  }
  return extensions;
}

absl::StatusOr<VkDevice> CreateDevice(const DeviceSnapshot& snapshot, uint32_t queue_family) {
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const std::vector<const char*> extensions = ExtensionsFor(snapshot);
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  VkPhysicalDeviceBufferDeviceAddressFeatures address{};
  address.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
  address.bufferDeviceAddress = VK_TRUE;
  if (snapshot.buffer_device_address) create.pNext = &address;
  VkDevice device = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkCreateDevice(snapshot.handle, &create, nullptr, &device), "vkCreateDevice"));
  return device;
}

absl::StatusOr<ExternalBufferTypes> ReadExternalBufferTypes(VkDevice device,
                                                            HandleTypes handle_types) {
  const auto read = [&](HandleType type) -> absl::StatusOr<uint32_t> {
    if (!handle_types.has(type)) return 0;
    HB_ASSIGN_OR_RETURN(const ExternalBuffer probe,
                        ExternalBuffer::Create(device, {type}, kProbeSize));
    return probe.requirements().memoryTypeBits;
  };
  ExternalBufferTypes types;
  HB_ASSIGN_OR_RETURN(types.opaque_fd, read(HandleType::kOpaqueFd));
  HB_ASSIGN_OR_RETURN(types.dma_buf, read(HandleType::kDmaBuf));
  return types;
}

}  // namespace

absl::StatusOr<VulkanDevice> VulkanDevice::Open(std::shared_ptr<const VulkanInstance> instance,
                                                const DeviceSnapshot& snapshot, uint32_t index) {
  if (absl::Status usable = CheckUsable(snapshot); !usable.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("device '", snapshot.name, "' ", usable.message()));
  }
  VulkanDevice device;
  device.physical_device_ = snapshot.handle;
  device.queue_family_ = *ChooseQueueFamily(snapshot);
  HB_ASSIGN_OR_RETURN(const VkDevice handle, CreateDevice(snapshot, device.queue_family_));
  device.handle_ = {handle, Destroyer{std::move(instance)}};
  vkGetDeviceQueue(handle, device.queue_family_, 0, &device.queue_);
  device.get_memory_fd_ =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(handle, "vkGetMemoryFdKHR"));
  if (device.get_memory_fd_ == nullptr) {
    return absl::InternalError(absl::StrCat("device '", snapshot.name,
                                            "' has no vkGetMemoryFdKHR, although it offers ",
                                            VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME));
  }
  device.fresh_memory_is_zero_ = DriverGivesZeros(snapshot.driver_id);
  device.has_memory_budget_ = snapshot.has_extension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  device.has_foreign_queue_family_ =
      snapshot.has_extension(VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME);
  HB_ASSIGN_OR_RETURN(const ExternalBufferTypes types,
                      ReadExternalBufferTypes(handle, ClaimedHandleTypes(snapshot).usable));
  device.info_ = DescribeDevice(snapshot, types, index);
  device.warnings_ = TryExports(device, device.info_);
  if (ClassesToTry(device.info_).empty()) {
    return absl::FailedPreconditionError(absl::StrCat("device '", snapshot.name,
                                                      "' can export no memory of buffers. ",
                                                      absl::StrJoin(device.warnings_, ". ")));
  }
  return device;
}

bool DriverGivesZeros(std::optional<VkDriverId> driver) {
  return driver == VK_DRIVER_ID_MESA_LLVMPIPE;
}

}  // namespace heapbroker

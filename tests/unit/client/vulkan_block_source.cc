// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/client/vulkan_block_source.h"

#include <fcntl.h>

#include <string>
#include <utility>

#include "client/src/import_checks.h"
#include "client/src/importing_device.h"
#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

absl::StatusOr<VkDeviceMemory> AllocateExportable(VkDevice device,
                                                  const VulkanBlockSource::Kind& kind,
                                                  uint64_t size, VkBuffer dedicated_buffer) {
  const VkExportMemoryAllocateInfo exported{.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                            .handleTypes = ToVulkan(kind.handle_type)};
  const VkMemoryDedicatedAllocateInfo dedicated{
      .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
      .pNext = &exported,
      .buffer = dedicated_buffer};
  const VkMemoryAllocateFlagsInfo flags{
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
      .pNext = kind.dedicated ? static_cast<const void*>(&dedicated) : &exported,
      .flags =
          kind.device_address ? VkMemoryAllocateFlags{VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT} : 0};
  const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &flags,
                                  .allocationSize = size,
                                  .memoryTypeIndex = 0};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkAllocateMemory(device, &info, nullptr, &memory), "vkAllocateMemory"));
  return memory;
}

absl::StatusOr<UniqueFd> Export(VkDevice device, VkDeviceMemory memory, HandleType type) {
  const auto get_fd =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(device, "vkGetMemoryFdKHR"));
  const VkMemoryGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                  .memory = memory,
                                  .handleType = ToVulkan(type)};
  int fd = -1;
  HB_RETURN_IF_ERROR(VulkanStatus(get_fd(device, &info, &fd), "vkGetMemoryFdKHR"));
  if (fd < 0) return absl::InternalError("vkGetMemoryFdKHR succeeded without a descriptor");
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return UniqueFd(fd);
}

}  // namespace

absl::StatusOr<BrokerDevice> FirstVulkanDevice() {
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .apiVersion = kRequiredVulkanVersion};
  const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                  .pApplicationInfo = &application};
  VkInstance instance = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(VulkanStatus(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance"));
  uint32_t count = 1;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  vkEnumeratePhysicalDevices(instance, &count, &physical_device);
  BrokerDevice device;
  if (count == 1) {
    const ImportingDevice found = ReadImportingDevice(physical_device);
    device = {.name = found.name,
              .device_uuid = found.device_uuid,
              .driver_uuid = found.driver_uuid,
              .memory_types = {{.property_flags = found.memory.memoryTypes[0].propertyFlags,
                                .exportable = true}}};
  }
  vkDestroyInstance(instance, nullptr);
  if (count == 0) return absl::NotFoundError("no Vulkan device");
  return device;
}

absl::StatusOr<std::unique_ptr<VulkanBlockSource>> VulkanBlockSource::Create() {
  HB_ASSIGN_OR_RETURN(const BrokerDevice description, FirstVulkanDevice());
  HB_ASSIGN_OR_RETURN(std::unique_ptr<MinimalDevice> device, MinimalDevice::Create(description));
  return std::unique_ptr<VulkanBlockSource>(new VulkanBlockSource(description, std::move(device)));
}

VulkanBlockSource::~VulkanBlockSource() {
  MutexLock lock(mutex_);
  dedicated_buffers_.clear();
  for (const VkDeviceMemory memory : memories_) {
    vkFreeMemory(device_->context().device, memory, nullptr);
  }
}

absl::StatusOr<BlockSource::Made> VulkanBlockSource::Make(uint64_t size) {
  const VkDevice device = device_->context().device;
  const Kind kind = [this] {
    MutexLock lock(mutex_);
    return kind_;
  }();
  const VkBufferUsageFlags usage = kind.dedicated
                                       ? DedicatedUsage({.device_address = kind.device_address})
                                       : VkBufferUsageFlags{VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  HB_ASSIGN_OR_RETURN(ImportBuffer buffer,
                      ImportBuffer::Create(device, kind.handle_type, Bytes(size), usage));
  const VkMemoryRequirements requirements = buffer.requirements();
  HB_ASSIGN_OR_RETURN(const VkDeviceMemory memory,
                      AllocateExportable(device, kind, requirements.size, buffer.handle()));
  {
    MutexLock lock(mutex_);
    memories_.push_back(memory);
    if (kind.dedicated) dedicated_buffers_.push_back(std::move(buffer));
  }
  Made made;
  HB_ASSIGN_OR_RETURN(made.fd, Export(device, memory, kind.handle_type));
  made.block.set_size(size);
  made.block.set_allocation_size(requirements.size);
  made.block.set_memory_type_index(0);
  made.block.set_memory_property_flags(description_.memory_types[0].property_flags);
  made.block.set_handle_type(kind.handle_type == HandleType::kDmaBuf ? v1::HANDLE_TYPE_DMA_BUF
                                                                     : v1::HANDLE_TYPE_OPAQUE_FD);
  made.block.set_device_address(kind.device_address);
  made.block.set_dedicated(kind.dedicated);
  return made;
}

v1::Device VulkanBlockSource::Device() const {
  v1::Device device;
  device.set_name(description_.name);
  device.set_device_uuid(
      std::string(description_.device_uuid.begin(), description_.device_uuid.end()));
  device.set_driver_uuid(
      std::string(description_.driver_uuid.begin(), description_.driver_uuid.end()));
  return device;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/client/vulkan_block_source.h"

#include <fcntl.h>

#include <string>
#include <utility>

#include "client/src/importing_device.h"
#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHandleType =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

// What a buffer of `size` bytes that can be exported needs.
absl::StatusOr<VkMemoryRequirements> RequirementsOf(VkDevice device, uint64_t size) {
  const VkExternalMemoryBufferCreateInfo external{
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kHandleType};
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .pNext = &external,
                                .size = size,
                                .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  VkBuffer buffer = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer"));
  VkMemoryRequirements requirements{};
  vkGetBufferMemoryRequirements(device, buffer, &requirements);
  vkDestroyBuffer(device, buffer, nullptr);
  return requirements;
}

absl::StatusOr<VkDeviceMemory> AllocateExportable(VkDevice device, uint64_t size) {
  const VkExportMemoryAllocateInfo exported{.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                            .handleTypes = kHandleType};
  const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &exported,
                                  .allocationSize = size,
                                  .memoryTypeIndex = 0};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkAllocateMemory(device, &info, nullptr, &memory), "vkAllocateMemory"));
  return memory;
}

absl::StatusOr<UniqueFd> Export(VkDevice device, VkDeviceMemory memory) {
  const auto get_fd =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(device, "vkGetMemoryFdKHR"));
  const VkMemoryGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                  .memory = memory,
                                  .handleType = kHandleType};
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
  for (const VkDeviceMemory memory : memories_) {
    vkFreeMemory(device_->context().device, memory, nullptr);
  }
}

absl::StatusOr<BlockSource::Made> VulkanBlockSource::Make(uint64_t size) {
  const VkDevice device = device_->context().device;
  HB_ASSIGN_OR_RETURN(const VkMemoryRequirements requirements, RequirementsOf(device, size));
  HB_ASSIGN_OR_RETURN(const VkDeviceMemory memory, AllocateExportable(device, requirements.size));
  {
    MutexLock lock(mutex_);
    memories_.push_back(memory);
  }
  Made made;
  HB_ASSIGN_OR_RETURN(made.fd, Export(device, memory));
  made.block.set_size(size);
  made.block.set_allocation_size(requirements.size);
  made.block.set_memory_type_index(0);
  made.block.set_memory_property_flags(description_.memory_types[0].property_flags);
  made.block.set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
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

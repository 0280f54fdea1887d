// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/vulkan_program.h"

#include <cstdio>
#include <cstdlib>

namespace heapbroker {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHandleType =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

void Require(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  std::fprintf(stderr, "%s: VkResult %d\n", call, static_cast<int>(result));
  std::abort();
}

}  // namespace

VkResult VulkanProgram::CreateInstance(VkInstance* instance) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  return vkCreateInstance(&info, nullptr, instance);
}

std::vector<VkPhysicalDevice> VulkanProgram::ListDevices(VkInstance instance) {
  uint32_t count = 0;
  Require(vkEnumeratePhysicalDevices(instance, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  Require(vkEnumeratePhysicalDevices(instance, &count, devices.data()),
          "vkEnumeratePhysicalDevices");
  return devices;
}

VkResult VulkanProgram::CreateDevice(VkPhysicalDevice physical_device,
                                     const std::vector<const char*>& extensions, VkDevice* device) {
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  std::vector<const char*> all = extensions;
  all.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(all.size());
  info.ppEnabledExtensionNames = all.data();
  return vkCreateDevice(physical_device, &info, nullptr, device);
}

VulkanProgram::VulkanProgram(size_t index, const std::vector<const char*>& extensions) {
  Require(CreateInstance(&instance_), "vkCreateInstance");
  physical_device_ = ListDevices(instance_).at(index);
  Require(CreateDevice(physical_device_, extensions, &device_), "vkCreateDevice");
  vkGetDeviceQueue(device_, 0, 0, &queue_);
}

VulkanProgram::~VulkanProgram() {
  vkDestroyDevice(device_, nullptr);
  vkDestroyInstance(instance_, nullptr);
}

VkPhysicalDeviceProperties VulkanProgram::Properties() const {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(physical_device_, &properties);
  return properties;
}

VkPhysicalDeviceMemoryProperties VulkanProgram::Memory() const {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_device_, &memory);
  return memory;
}

VkPhysicalDeviceMemoryBudgetPropertiesEXT VulkanProgram::Budgets() const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(physical_device_, &memory);
  return budget;
}

std::set<std::string> VulkanProgram::Extensions() const {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(physical_device_, nullptr, &count, extensions.data());
  std::set<std::string> names;
  for (const VkExtensionProperties& extension : extensions) names.insert(extension.extensionName);
  return names;
}

VkResult VulkanProgram::Allocate(uint32_t type, VkDeviceSize size, VkDeviceMemory* memory) const {
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = kHandleType;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &exported;
  info.allocationSize = size;
  info.memoryTypeIndex = type;
  return vkAllocateMemory(device_, &info, nullptr, memory);
}

VkResult VulkanProgram::Import(int fd, uint32_t type, VkDeviceSize size,
                               VkDeviceMemory* memory) const {
  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = kHandleType;
  import.fd = fd;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &import;
  info.allocationSize = size;
  info.memoryTypeIndex = type;
  return vkAllocateMemory(device_, &info, nullptr, memory);
}

VkResult VulkanProgram::Export(VkDeviceMemory memory, int* fd) const {
  const auto get =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(device_, "vkGetMemoryFdKHR"));
  VkMemoryGetFdInfoKHR info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  info.memory = memory;
  info.handleType = kHandleType;
  return get(device_, &info, fd);
}

VkResult VulkanProgram::CreateBuffer(VkDeviceSize size, VkBuffer* buffer) const {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = kHandleType;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = &external;
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  return vkCreateBuffer(device_, &info, nullptr, buffer);
}

}  // namespace heapbroker

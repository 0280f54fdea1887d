// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A small Vulkan program for looking at what the fault layer does.
#ifndef TESTS_FAULTS_VULKAN_PROGRAM_H_
#define TESTS_FAULTS_VULKAN_PROGRAM_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace heapbroker {

// An instance and one device, destroyed in order. Everything else that it makes is
// the caller's to destroy. The program ends if the instance or the device cannot be
// made, unless the caller asks for the result. Not thread-safe.
class VulkanProgram {
 public:
  // The device at `index`, with these extensions beside VK_KHR_external_memory_fd.
  explicit VulkanProgram(size_t index = 0, const std::vector<const char*>& extensions = {});
  ~VulkanProgram();
  VulkanProgram(const VulkanProgram&) = delete;
  VulkanProgram& operator=(const VulkanProgram&) = delete;

  static VkResult CreateInstance(VkInstance* instance);
  static std::vector<VkPhysicalDevice> ListDevices(VkInstance instance);
  static VkResult CreateDevice(VkPhysicalDevice physical_device,
                               const std::vector<const char*>& extensions, VkDevice* device);

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical_device() const { return physical_device_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }

  VkPhysicalDeviceProperties Properties() const;
  VkPhysicalDeviceMemoryProperties Memory() const;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT Budgets() const;
  std::set<std::string> Extensions() const;

  // Exportable as opaque descriptors.
  VkResult Allocate(uint32_t type, VkDeviceSize size, VkDeviceMemory* memory) const;
  // Takes the descriptor over if it succeeds.
  VkResult Import(int fd, uint32_t type, VkDeviceSize size, VkDeviceMemory* memory) const;
  VkResult Export(VkDeviceMemory memory, int* fd) const;
  // For opaque descriptors.
  VkResult CreateBuffer(VkDeviceSize size, VkBuffer* buffer) const;
  void Free(VkDeviceMemory memory) const { vkFreeMemory(device_, memory, nullptr); }

 private:
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
};

}  // namespace heapbroker
#endif  // TESTS_FAULTS_VULKAN_PROGRAM_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/external_buffer.h"
#include "daemon/vulkan/handle_type.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
namespace {

// The loader's lists are asked for twice, for their length and for themselves,
// and may have grown between (VK_INCOMPLETE): asked again a few times only.
constexpr int kListAttempts = 8;

Uuid ToUuid(const uint8_t (&bytes)[VK_UUID_SIZE]) {
  Uuid uuid;
  static_assert(uuid.size() == VK_UUID_SIZE);
  std::copy(bytes, bytes + VK_UUID_SIZE, uuid.begin());
  return uuid;
}

absl::StatusOr<std::vector<VkPhysicalDevice>> ListPhysicalDevices(VkInstance instance) {
  VkResult result = VK_INCOMPLETE;
  std::vector<VkPhysicalDevice> devices;
  for (int attempt = 0; attempt < kListAttempts && result == VK_INCOMPLETE; ++attempt) {
    uint32_t count = 0;
    result = vkEnumeratePhysicalDevices(instance, &count, nullptr);
    if (result != VK_SUCCESS || count == 0) break;
    devices.resize(count);
    result = vkEnumeratePhysicalDevices(instance, &count, devices.data());
    devices.resize(count);
  }
  // How the loader reports drivers that found nothing that they could drive.
  if (result == VK_ERROR_INITIALIZATION_FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat("the installed Vulkan drivers found no device (vkEnumeratePhysicalDevices: ",
                     ResultName(result), "). ", kNoDeviceAdvice));
  }
  HB_RETURN_IF_ERROR(ResultToStatus(result, "vkEnumeratePhysicalDevices"));
  return devices;
}

absl::StatusOr<std::set<std::string>> ListExtensions(VkPhysicalDevice device) {
  VkResult result = VK_INCOMPLETE;
  std::vector<VkExtensionProperties> extensions;
  for (int attempt = 0; attempt < kListAttempts && result == VK_INCOMPLETE; ++attempt) {
    uint32_t count = 0;
    result = vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) break;
    extensions.resize(count);
    result = vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
    extensions.resize(count);
  }
  HB_RETURN_IF_ERROR(ResultToStatus(result, "vkEnumerateDeviceExtensionProperties"));
  std::set<std::string> names;
  for (const VkExtensionProperties& extension : extensions) names.insert(extension.extensionName);
  return names;
}

// Structures that a device does not know must not be in the chain, so each is
// put there by version or extension.
void ReadProperties(DeviceSnapshot& snapshot) {
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties maintenance3{};
  maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  maintenance3.pNext = &id;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &maintenance3;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  const bool has_driver = snapshot.has(VK_API_VERSION_1_2, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
  if (has_driver) driver.pNext = std::exchange(properties.pNext, &driver);
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
  const bool has_maintenance4 =
      snapshot.has(VK_API_VERSION_1_3, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
  if (has_maintenance4) maintenance4.pNext = std::exchange(properties.pNext, &maintenance4);

  vkGetPhysicalDeviceProperties2(snapshot.handle, &properties);
  snapshot.device_uuid = ToUuid(id.deviceUUID);
  snapshot.driver_uuid = ToUuid(id.driverUUID);
  snapshot.max_allocation_count = properties.properties.limits.maxMemoryAllocationCount;
  snapshot.max_allocation_size = Bytes(maintenance3.maxMemoryAllocationSize);
  if (has_driver) {
    snapshot.driver_id = driver.driverID;
    snapshot.driver_name = driver.driverName;
    snapshot.driver_info = driver.driverInfo;
  }
  if (has_maintenance4) snapshot.max_buffer_size = Bytes(maintenance4.maxBufferSize);
}

// What tells two devices of one kind apart.
void ReadPlace(DeviceSnapshot& snapshot) {
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  const bool has_pci = snapshot.has_extension(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  if (has_pci) pci.pNext = std::exchange(properties.pNext, &pci);
  VkPhysicalDeviceDrmPropertiesEXT drm{};
  drm.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT;
  const bool has_drm = snapshot.has_extension(VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME);
  if (has_drm) drm.pNext = std::exchange(properties.pNext, &drm);
  if (!has_pci && !has_drm) return;
  vkGetPhysicalDeviceProperties2(snapshot.handle, &properties);
  if (has_pci) {
    snapshot.pci = PciAddress{pci.pciDomain, pci.pciBus, pci.pciDevice, pci.pciFunction};
  }
  if (has_drm && drm.hasRender != VK_FALSE) {
    snapshot.render_node = DeviceNode{drm.renderMajor, drm.renderMinor};
  }
}

void ReadFeatures(DeviceSnapshot& snapshot) {
  if (!snapshot.has(VK_API_VERSION_1_2, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME)) return;
  VkPhysicalDeviceBufferDeviceAddressFeatures address{};
  address.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &address;
  vkGetPhysicalDeviceFeatures2(snapshot.handle, &features);
  snapshot.buffer_device_address = address.bufferDeviceAddress != VK_FALSE;
}

void ReadMemory(DeviceSnapshot& snapshot) {
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  const bool has_budget = snapshot.has_extension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (has_budget) properties.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(snapshot.handle, &properties);
  const VkPhysicalDeviceMemoryProperties& memory = properties.memoryProperties;
  snapshot.heaps.assign(memory.memoryHeaps, memory.memoryHeaps + memory.memoryHeapCount);
  snapshot.memory_types.assign(memory.memoryTypes, memory.memoryTypes + memory.memoryTypeCount);
  if (has_budget) {
    snapshot.heap_budgets.assign(budget.heapBudget, budget.heapBudget + memory.memoryHeapCount);
  }
}

void ReadQueueFamilies(DeviceSnapshot& snapshot) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(snapshot.handle, &count, nullptr);
  snapshot.queue_families.resize(count);
  vkGetPhysicalDeviceQueueFamilyProperties(snapshot.handle, &count, snapshot.queue_families.data());
  snapshot.queue_families.resize(count);
}

VkExternalMemoryProperties ReadExternalBuffers(VkPhysicalDevice device, HandleType type) {
  VkPhysicalDeviceExternalBufferInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
  buffer.usage = kExternalBufferUsage;
  buffer.handleType = ToVulkan(type);
  VkExternalBufferProperties properties{};
  properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
  vkGetPhysicalDeviceExternalBufferProperties(device, &buffer, &properties);
  return properties.externalMemoryProperties;
}

absl::StatusOr<DeviceSnapshot> ReadDevice(VkPhysicalDevice handle, uint32_t instance_version) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(handle, &properties);
  DeviceSnapshot snapshot;
  snapshot.handle = handle;
  snapshot.name = properties.deviceName;
  snapshot.type = properties.deviceType;
  snapshot.api_version = std::min(properties.apiVersion, instance_version);
  HB_ASSIGN_OR_RETURN(snapshot.extensions, ListExtensions(handle));
  if (snapshot.api_version < VulkanInstance::kLowestApiVersion) return snapshot;
  ReadProperties(snapshot);
  ReadPlace(snapshot);
  ReadFeatures(snapshot);
  ReadMemory(snapshot);
  ReadQueueFamilies(snapshot);
  snapshot.opaque_fd_buffers = ReadExternalBuffers(handle, HandleType::kOpaqueFd);
  if (snapshot.has_extension(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME)) {
    snapshot.dma_buf_buffers = ReadExternalBuffers(handle, HandleType::kDmaBuf);
  }
  return snapshot;
}

}  // namespace

absl::StatusOr<std::vector<DeviceSnapshot>> ReadDevices(const VulkanInstance& instance) {
  HB_ASSIGN_OR_RETURN(const std::vector<VkPhysicalDevice> handles,
                      ListPhysicalDevices(instance.handle()));
  std::vector<DeviceSnapshot> snapshots;
  for (VkPhysicalDevice handle : handles) {
    HB_ASSIGN_OR_RETURN(DeviceSnapshot snapshot, ReadDevice(handle, instance.api_version()));
    snapshots.push_back(std::move(snapshot));
  }
  return snapshots;
}

}  // namespace heapbroker

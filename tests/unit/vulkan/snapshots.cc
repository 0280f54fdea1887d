// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vulkan/snapshots.h"

namespace heapbroker {

DeviceSnapshot MakeSnapshot(const std::string& name, VkPhysicalDeviceType type, uint8_t id) {
  DeviceSnapshot device;
  device.name = name;
  device.type = type;
  device.api_version = VK_API_VERSION_1_3;
  device.extensions = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  device.driver_info = "driver of " + name;
  device.device_uuid = {0xAB, 0xCD};
  device.device_uuid.back() = id;
  device.driver_uuid = {0xEF};
  device.driver_uuid.back() = id;
  VkMemoryHeap heap{};
  heap.size = GiB(8).count();
  heap.flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
  device.heaps = {heap};
  VkMemoryType memory_type{};
  memory_type.propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  device.memory_types = {memory_type};
  VkQueueFamilyProperties family{};
  family.queueCount = 1;
  family.queueFlags = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
  device.queue_families = {family};
  device.max_allocation_count = 4096;
  device.max_allocation_size = GiB(4);
  device.opaque_fd_buffers.externalMemoryFeatures =
      VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  device.opaque_fd_buffers.compatibleHandleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  return device;
}

}  // namespace heapbroker

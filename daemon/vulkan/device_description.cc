// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_description.h"

#include <algorithm>

namespace heapbroker {
namespace {

DeviceType ToDeviceType(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceType::kIntegratedGpu;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceType::kDiscreteGpu;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceType::kVirtualGpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceType::kCpu;
    default:
      return DeviceType::kOther;
  }
}

MemoryTypeInfo DescribeMemoryType(const VkMemoryType& type, bool backs_external_buffers) {
  constexpr VkMemoryPropertyFlags kPlain =
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
      VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  const VkMemoryPropertyFlags flags = type.propertyFlags;
  MemoryTypeInfo info;
  info.heap = type.heapIndex;
  info.device_local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  info.host_visible = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  info.host_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
  info.host_cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  info.property_flags = flags;
  info.exportable.opaque_fd = backs_external_buffers && (flags & ~kPlain) == 0;
  return info;
}

HeapInfo DescribeHeap(const DeviceSnapshot& snapshot, size_t heap) {
  HeapInfo info;
  info.size = Bytes(snapshot.heaps[heap].size);
  info.device_local = (snapshot.heaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
  const VkDeviceSize budget = heap < snapshot.heap_budgets.size() ? snapshot.heap_budgets[heap] : 0;
  if (budget != 0) info.driver_budget = std::min(Bytes(budget), info.size);
  return info;
}

}  // namespace

DeviceInfo DescribeDevice(const DeviceSnapshot& snapshot, uint32_t external_buffer_types,
                          uint32_t index) {
  DeviceInfo info;
  info.index = index;
  info.name = snapshot.name;
  info.driver_info = snapshot.driver_info;
  info.type = ToDeviceType(snapshot.type);
  info.device_uuid = snapshot.device_uuid;
  info.driver_uuid = snapshot.driver_uuid;
  for (size_t i = 0; i < snapshot.heaps.size(); ++i) {
    info.heaps.push_back(DescribeHeap(snapshot, i));
  }
  for (size_t i = 0; i < snapshot.memory_types.size(); ++i) {
    const bool backs_external_buffers = (external_buffer_types >> i & 1) != 0;
    info.memory_types.push_back(
        DescribeMemoryType(snapshot.memory_types[i], backs_external_buffers));
  }
  info.max_allocation_size =
      std::min(snapshot.max_allocation_size, snapshot.max_buffer_size.value_or(Bytes::Max()));
  info.max_allocation_count = snapshot.max_allocation_count;
  return info;
}

}  // namespace heapbroker

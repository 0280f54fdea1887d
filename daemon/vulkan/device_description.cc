// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_description.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/core/memory_type_choice.h"
#include "daemon/vulkan/handle_type.h"

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

MemoryTypeInfo DescribeMemoryType(const VkMemoryType& type, HandleTypes exportable) {
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
  if ((flags & ~kPlain) == 0) info.exportable = exportable;
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

DeviceInfo DescribeDevice(const DeviceSnapshot& snapshot,
                          const ExternalBufferTypes& external_buffer_types, uint32_t index) {
  const HandleClaims claims = ClaimedHandleTypes(snapshot);
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
    const HandleTypes exportable = {
        claims.usable.opaque_fd && (external_buffer_types.opaque_fd >> i & 1) != 0,
        claims.usable.dma_buf && (external_buffer_types.dma_buf >> i & 1) != 0};
    info.memory_types.push_back(DescribeMemoryType(snapshot.memory_types[i], exportable));
  }
  info.max_allocation_size =
      std::min(snapshot.max_allocation_size, snapshot.max_buffer_size.value_or(Bytes::Max()));
  info.max_allocation_count = snapshot.max_allocation_count;
  info.device_addresses = snapshot.buffer_device_address;
  info.dedicated_only = claims.dedicated_only;
  return info;
}

std::vector<BlockClass> ClassesToTry(const DeviceInfo& info) {
  std::vector<BlockClass> classes;
  for (uint32_t i = 0; i < info.memory_types.size(); ++i) {
    for (HandleType handle_type : kHandleTypes) {
      if (!info.memory_types[i].exportable.has(handle_type)) continue;
      classes.push_back(
          {i, handle_type, /*device_address=*/false, info.dedicated_only.has(handle_type)});
    }
  }
  return classes;
}

std::vector<BlockClass> AddressClassesToTry(const DeviceInfo& info) {
  std::vector<BlockClass> classes = ClassesToTry(info);
  if (classes.empty() || !info.device_addresses) return {};
  classes.resize(1);
  classes.front().device_address = true;
  return classes;
}

std::vector<std::string> DropWhatFailed(absl::Span<const HandleTrial> trials, DeviceInfo& info) {
  std::vector<std::string> warnings;
  for (const HandleTrial& trial : trials) {
    if (trial.status.ok()) continue;
    const BlockClass& tried = trial.block_class;
    HandleTypes& exportable = info.memory_types[tried.memory_type].exportable;
    std::string what;
    if (tried.device_address) {
      info.device_addresses = false;
      what = "blocks with device addresses";
    } else {
      (tried.handle_type == HandleType::kDmaBuf ? exportable.dma_buf : exportable.opaque_fd) =
          false;
      what = absl::StrCat("memory type ", tried.memory_type, " as ",
                          HandleTypeName(tried.handle_type));
    }
    warnings.push_back(absl::StrCat(
        "device '", info.name, "' claims to export ", what,
        ", and failed when it was tried, so that is not offered: ", trial.status.message()));
  }
  return warnings;
}

}  // namespace heapbroker

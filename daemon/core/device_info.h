// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the daemon knows of a device, in the core's own words: plain values,
// read once when the device is opened.
#ifndef DAEMON_CORE_DEVICE_INFO_H_
#define DAEMON_CORE_DEVICE_INFO_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/block_class.h"
#include "heapbroker/units.h"

namespace heapbroker {

using Uuid = std::array<uint8_t, 16>;

enum class DeviceType { kOther, kIntegratedGpu, kDiscreteGpu, kVirtualGpu, kCpu };

struct HeapInfo {
  Bytes size;  // As the driver reports it, which is no limit: see HeapBudget.
  bool device_local = false;
  // What VK_EXT_memory_budget said that this process could have when the device
  // was opened; at most `size`. Unset where the driver does not say.
  std::optional<Bytes> driver_budget = std::nullopt;
};

struct MemoryTypeInfo {
  uint32_t heap = 0;  // Index into DeviceInfo::heaps.
  bool device_local = false;
  bool host_visible = false;
  bool host_coherent = false;
  bool host_cached = false;
  // VkMemoryPropertyFlags, for replies only; the core decides by the fields above.
  uint32_t property_flags = 0;
  // What buffer memory of this type can be exported as, as the driver says and as
  // was tried once when the device was opened.
  HandleTypes exportable;
};

struct DeviceInfo {
  uint32_t index = 0;
  std::string name;
  std::string driver_info;
  DeviceType type = DeviceType::kOther;
  Uuid device_uuid{};
  Uuid driver_uuid{};
  std::vector<HeapInfo> heaps;
  std::vector<MemoryTypeInfo> memory_types;
  // The smaller of maxMemoryAllocationSize and maxBufferSize: a block that no
  // buffer can cover is of no use to anyone.
  Bytes max_allocation_size;
  // maxMemoryAllocationCount; passing it is undefined behaviour.
  uint64_t max_allocation_count = 0;
  // Blocks can be made with BlockClass::device_address.
  bool device_addresses = false;
  // External memory of this handle type must be dedicated
  // (VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT).
  HandleTypes dedicated_only = {};

  bool software() const { return type == DeviceType::kCpu; }
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_INFO_H_

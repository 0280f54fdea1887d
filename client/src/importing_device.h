// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The importing device, read once into plain values.
#ifndef CLIENT_SRC_IMPORTING_DEVICE_H_
#define CLIENT_SRC_IMPORTING_DEVICE_H_

#include <cstdint>
#include <string>

#include "heapbroker/types.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

struct ImportingDevice {
  std::string name;
  uint32_t api_version = 0;
  // Zeros below Vulkan 1.1.
  Uuid device_uuid{};
  Uuid driver_uuid{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint32_t max_allocation_count = 0;  // maxMemoryAllocationCount.
  Bytes non_coherent_atom;            // Granularity of flushes: nonCoherentAtomSize.
};

ImportingDevice ReadImportingDevice(VkPhysicalDevice device);

// "6d657361-3232-2e33-2e36-000000000000".
std::string FormatUuid(const Uuid& uuid);

}  // namespace heapbroker
#endif  // CLIENT_SRC_IMPORTING_DEVICE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/importing_device.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

ImportingDevice ReadImportingDevice(VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(device, &properties);
  ImportingDevice snapshot{.name = properties.deviceName,
                           .api_version = properties.apiVersion,
                           .max_allocation_count = properties.limits.maxMemoryAllocationCount,
                           .non_coherent_atom = Bytes(properties.limits.nonCoherentAtomSize)};
  vkGetPhysicalDeviceMemoryProperties(device, &snapshot.memory);
  if (properties.apiVersion < kRequiredVulkanVersion) return snapshot;
  VkPhysicalDeviceIDProperties ids{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceProperties2 properties2{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                          .pNext = &ids};
  vkGetPhysicalDeviceProperties2(device, &properties2);
  std::copy(std::begin(ids.deviceUUID), std::end(ids.deviceUUID), snapshot.device_uuid.begin());
  std::copy(std::begin(ids.driverUUID), std::end(ids.driverUUID), snapshot.driver_uuid.begin());
  return snapshot;
}

std::string FormatUuid(const Uuid& uuid) {
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(uuid.data()), uuid.size()));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace heapbroker

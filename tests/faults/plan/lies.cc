// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/lies.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace heapbroker::faults {
namespace {

void CopyUuid(const std::optional<PlannedUuid>& uuid, uint8_t (&out)[VK_UUID_SIZE]) {
  if (uuid) std::copy(uuid->begin(), uuid->end(), out);
}

template <typename Properties>
void LieAboutIds(const DevicePlan& plan, Properties& properties) {
  CopyUuid(plan.device_uuid, properties.deviceUUID);
  CopyUuid(plan.driver_uuid, properties.driverUUID);
}

template <typename Properties>
void LieAboutAllocationSize(const DevicePlan& plan, Properties& properties) {
  if (plan.max_allocation_size) {
    properties.maxMemoryAllocationSize = plan.max_allocation_size->count();
  }
}

template <typename Properties>
void LieAboutBufferSize(const DevicePlan& plan, Properties& properties) {
  if (plan.max_buffer_size) properties.maxBufferSize = plan.max_buffer_size->count();
}

template <typename Properties>
void LieAboutDriver(const DevicePlan& plan, Properties& properties) {
  if (plan.driver_id) properties.driverID = *plan.driver_id;
}

void LieAbout(const DevicePlan& plan, VkBaseOutStructure* structure) {
  switch (structure->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES:
      return LieAboutIds(plan, *reinterpret_cast<VkPhysicalDeviceIDProperties*>(structure));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES: {
      auto& properties = *reinterpret_cast<VkPhysicalDeviceVulkan11Properties*>(structure);
      LieAboutIds(plan, properties);
      return LieAboutAllocationSize(plan, properties);
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES:
      return LieAboutAllocationSize(
          plan, *reinterpret_cast<VkPhysicalDeviceMaintenance3Properties*>(structure));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES:
      return LieAboutBufferSize(
          plan, *reinterpret_cast<VkPhysicalDeviceMaintenance4Properties*>(structure));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES:
      return LieAboutBufferSize(plan,
                                *reinterpret_cast<VkPhysicalDeviceVulkan13Properties*>(structure));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES:
      return LieAboutDriver(plan, *reinterpret_cast<VkPhysicalDeviceDriverProperties*>(structure));
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES:
      return LieAboutDriver(plan,
                            *reinterpret_cast<VkPhysicalDeviceVulkan12Properties*>(structure));
    default:
      return;
  }
}

}  // namespace

void LieAboutProperties(const DevicePlan& plan, VkPhysicalDeviceProperties& properties) {
  if (plan.device_name) {
    std::memset(properties.deviceName, 0, sizeof(properties.deviceName));
    plan.device_name->copy(properties.deviceName, sizeof(properties.deviceName) - 1);
  }
  if (plan.device_type) properties.deviceType = *plan.device_type;
  if (plan.max_allocation_count) {
    properties.limits.maxMemoryAllocationCount = *plan.max_allocation_count;
  }
}

void LieAboutPropertiesChain(const DevicePlan& plan, void* chain) {
  for (auto* at = static_cast<VkBaseOutStructure*>(chain); at != nullptr; at = at->pNext) {
    LieAbout(plan, at);
  }
}

void LieAboutMemory(const DevicePlan& plan, VkPhysicalDeviceMemoryProperties& memory) {
  if (plan.memory_types.empty()) return;
  memory = {};
  memory.memoryHeapCount = static_cast<uint32_t>(plan.heaps.size());
  for (size_t i = 0; i < plan.heaps.size(); ++i) {
    memory.memoryHeaps[i] = {plan.heaps[i].size.count(), plan.heaps[i].flags};
  }
  memory.memoryTypeCount = static_cast<uint32_t>(plan.memory_types.size());
  for (size_t i = 0; i < plan.memory_types.size(); ++i) {
    memory.memoryTypes[i] = {plan.memory_types[i].flags, plan.memory_types[i].heap};
  }
}

void LieAboutExternalMemory(const DevicePlan& plan, VkExternalMemoryHandleTypeFlagBits handle,
                            VkExternalMemoryProperties& properties) {
  const auto found = plan.external.find(handle);
  if (found == plan.external.end()) return;
  VkExternalMemoryFeatureFlags& features = properties.externalMemoryFeatures;
  if (!found->second.exportable) {
    features &= ~VkExternalMemoryFeatureFlags{VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT};
    properties.exportFromImportedHandleTypes &= ~VkExternalMemoryHandleTypeFlags{handle};
  }
  if (!found->second.importable) {
    features &= ~VkExternalMemoryFeatureFlags{VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT};
  }
  if (found->second.dedicated_only) features |= VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
}

void LieAboutRequirements(const DevicePlan& plan, VkMemoryRequirements& requirements) {
  requirements.size = PaddedSize(plan, requirements.size);
  requirements.memoryTypeBits = PlannedTypeBits(plan, requirements.memoryTypeBits);
}

std::vector<VkExtensionProperties> LieAboutExtensions(
    const DevicePlan& plan, const std::vector<VkExtensionProperties>& real) {
  std::vector<VkExtensionProperties> shown;
  for (const VkExtensionProperties& extension : real) {
    if (plan.hidden_extensions.count(extension.extensionName) != 0) continue;
    shown.push_back(extension);
  }
  for (const std::string& name : plan.added_extensions) {
    const bool there = std::any_of(
        shown.begin(), shown.end(),
        [&](const VkExtensionProperties& extension) { return name == extension.extensionName; });
    if (there) continue;
    VkExtensionProperties added{};
    name.copy(added.extensionName, sizeof(added.extensionName) - 1);
    added.specVersion = 1;
    shown.push_back(added);
  }
  return shown;
}

uint32_t PlannedTypeBits(const DevicePlan& plan, uint32_t real_bits) {
  if (plan.memory_types.empty()) return real_bits;
  uint32_t bits = 0;
  for (size_t i = 0; i < plan.memory_types.size(); ++i) {
    if ((real_bits >> plan.memory_types[i].real_type & 1) != 0) bits |= uint32_t{1} << i;
  }
  return bits;
}

uint32_t RealType(const DevicePlan& plan, uint32_t type) {
  return plan.memory_types.empty() ? type : plan.memory_types[type].real_type;
}

VkDeviceSize PaddedSize(const DevicePlan& plan, VkDeviceSize size) {
  if (!plan.padding) return size;
  constexpr VkDeviceSize kMax = std::numeric_limits<VkDeviceSize>::max();
  const VkDeviceSize granularity = plan.padding->granularity.count();
  const VkDeviceSize extra = plan.padding->extra.count();
  const VkDeviceSize blocks = size / granularity + (size % granularity == 0 ? 0 : 1);
  if (blocks > kMax / granularity) return kMax;
  return blocks * granularity > kMax - extra ? kMax : blocks * granularity + extra;
}

bool IsPaddedSize(const DevicePlan& plan, VkDeviceSize size) {
  if (!plan.padding) return true;
  const VkDeviceSize extra = plan.padding->extra.count();
  return size > extra && (size - extra) % plan.padding->granularity.count() == 0;
}

}  // namespace heapbroker::faults

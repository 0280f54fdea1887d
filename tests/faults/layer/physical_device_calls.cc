// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <vulkan/vulkan.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/chains.h"
#include "tests/faults/layer/objects.h"
#include "tests/faults/layer/physical_devices.h"
#include "tests/faults/plan/lies.h"

namespace heapbroker::faults {
namespace {

// A question whose answer is the driver's.
#define HB_PASS_ON(name, ...)                    \
  const PhysicalDevice& device = Unwrap(handle); \
  return device.instance->next.name(device.real, __VA_ARGS__)

void GetPhysicalDeviceFeatures(VkPhysicalDevice handle, VkPhysicalDeviceFeatures* features) {
  HB_PASS_ON(GetPhysicalDeviceFeatures, features);
}
void GetPhysicalDeviceFeatures2(VkPhysicalDevice handle, VkPhysicalDeviceFeatures2* features) {
  HB_PASS_ON(GetPhysicalDeviceFeatures2, features);
}
void GetPhysicalDeviceFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                       VkFormatProperties* properties) {
  HB_PASS_ON(GetPhysicalDeviceFormatProperties, format, properties);
}
void GetPhysicalDeviceFormatProperties2(VkPhysicalDevice handle, VkFormat format,
                                        VkFormatProperties2* properties) {
  HB_PASS_ON(GetPhysicalDeviceFormatProperties2, format, properties);
}
VkResult GetPhysicalDeviceImageFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                                VkImageType type, VkImageTiling tiling,
                                                VkImageUsageFlags usage, VkImageCreateFlags flags,
                                                VkImageFormatProperties* properties) {
  HB_PASS_ON(GetPhysicalDeviceImageFormatProperties, format, type, tiling, usage, flags,
             properties);
}
void GetPhysicalDeviceSparseImageFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                                  VkImageType type, VkSampleCountFlagBits samples,
                                                  VkImageUsageFlags usage, VkImageTiling tiling,
                                                  uint32_t* count,
                                                  VkSparseImageFormatProperties* properties) {
  HB_PASS_ON(GetPhysicalDeviceSparseImageFormatProperties, format, type, samples, usage, tiling,
             count, properties);
}
void GetPhysicalDeviceSparseImageFormatProperties2(
    VkPhysicalDevice handle, const VkPhysicalDeviceSparseImageFormatInfo2* info, uint32_t* count,
    VkSparseImageFormatProperties2* properties) {
  HB_PASS_ON(GetPhysicalDeviceSparseImageFormatProperties2, info, count, properties);
}
void GetPhysicalDeviceExternalFenceProperties(VkPhysicalDevice handle,
                                              const VkPhysicalDeviceExternalFenceInfo* info,
                                              VkExternalFenceProperties* properties) {
  HB_PASS_ON(GetPhysicalDeviceExternalFenceProperties, info, properties);
}
void GetPhysicalDeviceExternalSemaphoreProperties(VkPhysicalDevice handle,
                                                  const VkPhysicalDeviceExternalSemaphoreInfo* info,
                                                  VkExternalSemaphoreProperties* properties) {
  HB_PASS_ON(GetPhysicalDeviceExternalSemaphoreProperties, info, properties);
}
VkResult GetPhysicalDeviceToolProperties(VkPhysicalDevice handle, uint32_t* count,
                                         VkPhysicalDeviceToolProperties* properties) {
  HB_PASS_ON(GetPhysicalDeviceToolProperties, count, properties);
}
VkResult EnumerateDeviceLayerProperties(VkPhysicalDevice handle, uint32_t* count,
                                        VkLayerProperties* properties) {
  HB_PASS_ON(EnumerateDeviceLayerProperties, count, properties);
}
#undef HB_PASS_ON

// The families of a plan, like the driver's first but for what its queue can do. Empty
// where there is no plan for them.
std::vector<VkQueueFamilyProperties> PlannedFamilies(const PhysicalDevice& device) {
  if (device.plan->queue_families.empty()) return {};
  uint32_t count = 1;
  VkQueueFamilyProperties first{};
  device.instance->next.GetPhysicalDeviceQueueFamilyProperties(device.real, &count, &first);
  std::vector<VkQueueFamilyProperties> families;
  for (const QueueFamilyPlan& family : device.plan->queue_families) {
    families.push_back(first);
    families.back().queueFlags = family.flags;
    families.back().queueCount = family.queues;
  }
  return families;
}

void GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice handle, uint32_t* count,
                                            VkQueueFamilyProperties* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  const std::vector<VkQueueFamilyProperties> planned = PlannedFamilies(device);
  if (planned.empty()) {
    device.instance->next.GetPhysicalDeviceQueueFamilyProperties(device.real, count, properties);
  } else {
    ReturnList(planned, count, properties);
  }
}

void GetPhysicalDeviceQueueFamilyProperties2(VkPhysicalDevice handle, uint32_t* count,
                                             VkQueueFamilyProperties2* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  const std::vector<VkQueueFamilyProperties> planned = PlannedFamilies(device);
  if (planned.empty()) {
    device.instance->next.GetPhysicalDeviceQueueFamilyProperties2(device.real, count, properties);
    return;
  }
  const auto size = static_cast<uint32_t>(planned.size());
  *count = properties == nullptr ? size : std::min(*count, size);
  for (uint32_t i = 0; properties != nullptr && i < *count; ++i) {
    properties[i].queueFamilyProperties = planned[i];
  }
}

void GetPhysicalDeviceProperties(VkPhysicalDevice handle, VkPhysicalDeviceProperties* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  device.instance->next.GetPhysicalDeviceProperties(device.real, properties);
  LieAboutProperties(*device.plan, *properties);
}

void GetPhysicalDeviceProperties2(VkPhysicalDevice handle,
                                  VkPhysicalDeviceProperties2* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  device.instance->next.GetPhysicalDeviceProperties2(device.real, properties);
  LieAboutProperties(*device.plan, properties->properties);
  LieAboutPropertiesChain(*device.plan, properties->pNext);
}

void GetPhysicalDeviceMemoryProperties(VkPhysicalDevice handle,
                                       VkPhysicalDeviceMemoryProperties* properties) {
  *properties = ShownMemory(Unwrap(handle));
}

// Not of a device whose budgets and heaps are the driver's own.
bool HasPlannedBudgets(const DevicePlan& plan) {
  return !plan.heaps.empty() || !plan.budgets.empty() ||
         plan.added_extensions.count(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) != 0;
}

void FillBudgets(const PhysicalDevice& device, const VkPhysicalDeviceMemoryProperties& memory,
                 VkPhysicalDeviceMemoryBudgetPropertiesEXT& out) {
  FaultState& faults = *device.instance->faults;
  const std::map<uint32_t, BudgetPlan> budgets = faults.Budgets(*device.plan);
  for (uint32_t heap = 0; heap < VK_MAX_MEMORY_HEAPS; ++heap) {
    out.heapBudget[heap] = heap < memory.memoryHeapCount ? memory.memoryHeaps[heap].size : 0;
    out.heapUsage[heap] = faults.LiveHeapBytes(*device.plan, heap);
    const auto planned = budgets.find(heap);
    if (planned == budgets.end()) continue;
    out.heapBudget[heap] = planned->second.budget.count();
    if (planned->second.usage) out.heapUsage[heap] = planned->second.usage->count();
  }
}

void GetPhysicalDeviceMemoryProperties2(VkPhysicalDevice handle,
                                        VkPhysicalDeviceMemoryProperties2* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  device.instance->next.GetPhysicalDeviceMemoryProperties2(device.real, properties);
  LieAboutMemory(*device.plan, properties->memoryProperties);
  auto* const budget = FindInChain<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      properties->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  if (budget != nullptr && HasPlannedBudgets(*device.plan)) {
    FillBudgets(device, properties->memoryProperties, *budget);
  }
}

void GetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice handle,
                                               const VkPhysicalDeviceExternalBufferInfo* info,
                                               VkExternalBufferProperties* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  device.instance->next.GetPhysicalDeviceExternalBufferProperties(device.real, info, properties);
  LieAboutExternalMemory(*device.plan, info->handleType, properties->externalMemoryProperties);
}

VkResult GetPhysicalDeviceImageFormatProperties2(VkPhysicalDevice handle,
                                                 const VkPhysicalDeviceImageFormatInfo2* info,
                                                 VkImageFormatProperties2* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  const VkResult result =
      device.instance->next.GetPhysicalDeviceImageFormatProperties2(device.real, info, properties);
  const auto* const asked = FindInChain<VkPhysicalDeviceExternalImageFormatInfo>(
      info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO);
  auto* const answer = FindInChain<VkExternalImageFormatProperties>(
      properties->pNext, VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES);
  if (result == VK_SUCCESS && asked != nullptr && answer != nullptr) {
    LieAboutExternalMemory(*device.plan, asked->handleType, answer->externalMemoryProperties);
  }
  return result;
}

VkResult EnumerateDeviceExtensionProperties(VkPhysicalDevice handle, const char* layer,
                                            uint32_t* count, VkExtensionProperties* properties) {
  const PhysicalDevice& device = Unwrap(handle);
  if (layer != nullptr) {
    return device.instance->next.EnumerateDeviceExtensionProperties(device.real, layer, count,
                                                                    properties);
  }
  std::vector<VkExtensionProperties> real;
  const VkResult result = RealExtensions(device, real);
  if (result != VK_SUCCESS) return result;
  return ReturnList(ShownExtensions(device, real), count, properties);
}

}  // namespace

absl::Span<const EntryPoint> PhysicalDeviceCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(GetPhysicalDeviceFeatures),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceFeatures2),
      HB_ENTRY(GetPhysicalDeviceFormatProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceFormatProperties2),
      HB_ENTRY(GetPhysicalDeviceImageFormatProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceImageFormatProperties2),
      HB_ENTRY(GetPhysicalDeviceProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceProperties2),
      HB_ENTRY(GetPhysicalDeviceQueueFamilyProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceQueueFamilyProperties2),
      HB_ENTRY(GetPhysicalDeviceMemoryProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceMemoryProperties2),
      HB_ENTRY(GetPhysicalDeviceSparseImageFormatProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceSparseImageFormatProperties2),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceExternalBufferProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceExternalFenceProperties),
      HB_PROMOTED_ENTRY(GetPhysicalDeviceExternalSemaphoreProperties),
      HB_ENTRY(GetPhysicalDeviceToolProperties),
      HB_ENTRY(EnumerateDeviceLayerProperties),
      HB_ENTRY(EnumerateDeviceExtensionProperties),
  };
  return kCalls;
}

}  // namespace heapbroker::faults

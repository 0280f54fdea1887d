// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/layer/physical_devices.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/faults/plan/lies.h"

namespace heapbroker::faults {
namespace {

VkResult ListRealDevices(const Instance& instance, std::vector<VkPhysicalDevice>& real) {
  uint32_t count = 0;
  VkResult result = instance.next.EnumeratePhysicalDevices(instance.handle, &count, nullptr);
  if (result != VK_SUCCESS) return result;
  real.resize(count);
  result = instance.next.EnumeratePhysicalDevices(instance.handle, &count, real.data());
  real.resize(count);
  // One that was plugged in meanwhile is left out.
  return result == VK_INCOMPLETE ? VK_SUCCESS : result;
}

std::unique_ptr<PhysicalDevice> Wrap(Instance& instance, const DevicePlan& plan,
                                     VkPhysicalDevice real) {
  auto device = std::make_unique<PhysicalDevice>();
  device->loader_data = *reinterpret_cast<void**>(real);
  device->real = real;
  device->instance = &instance;
  device->plan = &plan;
  return device;
}

bool HasTheRealTypes(const PhysicalDevice& device) {
  VkPhysicalDeviceMemoryProperties memory{};
  device.instance->next.GetPhysicalDeviceMemoryProperties(device.real, &memory);
  return std::all_of(
      device.plan->memory_types.begin(), device.plan->memory_types.end(),
      [&](const MemoryTypePlan& type) { return type.real_type < memory.memoryTypeCount; });
}

VkResult WrapPlanned(Instance& instance, const std::vector<VkPhysicalDevice>& real,
                     std::vector<std::unique_ptr<PhysicalDevice>>& devices) {
  for (const DevicePlan& plan : instance.faults->plan().devices) {
    if (plan.every_device) {
      for (VkPhysicalDevice each : real) devices.push_back(Wrap(instance, plan, each));
      continue;
    }
    if (plan.real_device >= real.size()) {
      instance.faults->ReportViolation(absl::StrCat("the plan's device ", plan.name,
                                                    " stands for real_device ", plan.real_device,
                                                    " and the drivers have ", real.size()));
      return VK_ERROR_INITIALIZATION_FAILED;
    }
    devices.push_back(Wrap(instance, plan, real[plan.real_device]));
    if (!HasTheRealTypes(*devices.back())) {
      instance.faults->ReportViolation(absl::StrCat(
          "the plan's device ", plan.name, " has a memory type that the driver does not have"));
      return VK_ERROR_INITIALIZATION_FAILED;
    }
  }
  return VK_SUCCESS;
}

// Extensions with functions that take a VkPhysicalDevice, as far as drivers have
// them: this layer does not translate those.
bool AsksAboutPhysicalDevices(absl::string_view extension) {
  constexpr absl::string_view kNames[] = {
      "VK_KHR_swapchain",
      "VK_KHR_display_swapchain",
      "VK_KHR_performance_query",
      "VK_KHR_fragment_shading_rate",
      "VK_KHR_video_queue",
      "VK_KHR_cooperative_matrix",
      "VK_KHR_calibrated_timestamps",
      "VK_EXT_calibrated_timestamps",
      "VK_EXT_sample_locations",
      "VK_EXT_full_screen_exclusive",
      "VK_NV_cooperative_matrix",
      "VK_NV_coverage_reduction_mode",
      "VK_NV_optical_flow",
  };
  return std::find(std::begin(kNames), std::end(kNames), extension) != std::end(kNames);
}

}  // namespace

VkResult ListPhysicalDevices(Instance& instance, std::vector<PhysicalDevice*>& devices) {
  std::vector<VkPhysicalDevice> real;
  VkResult result = ListRealDevices(instance, real);
  if (result != VK_SUCCESS) return result;
  std::vector<std::unique_ptr<PhysicalDevice>> wrapped;
  result = WrapPlanned(instance, real, wrapped);
  if (result != VK_SUCCESS) return result;
  MutexLock lock(instance.mutex);
  if (instance.devices.empty()) instance.devices = std::move(wrapped);
  devices.clear();
  for (const auto& device : instance.devices) devices.push_back(device.get());
  return VK_SUCCESS;
}

VkPhysicalDeviceMemoryProperties ShownMemory(const PhysicalDevice& device) {
  VkPhysicalDeviceMemoryProperties memory{};
  device.instance->next.GetPhysicalDeviceMemoryProperties(device.real, &memory);
  LieAboutMemory(*device.plan, memory);
  return memory;
}

VkResult RealExtensions(const PhysicalDevice& device, std::vector<VkExtensionProperties>& real) {
  const InstanceDispatch& next = device.instance->next;
  uint32_t count = 0;
  VkResult result = next.EnumerateDeviceExtensionProperties(device.real, nullptr, &count, nullptr);
  if (result != VK_SUCCESS) return result;
  real.resize(count);
  result = next.EnumerateDeviceExtensionProperties(device.real, nullptr, &count, real.data());
  real.resize(count);
  return result;
}

std::vector<VkExtensionProperties> ShownExtensions(const PhysicalDevice& device,
                                                   const std::vector<VkExtensionProperties>& real) {
  std::vector<VkExtensionProperties> translated;
  for (const VkExtensionProperties& extension : real) {
    if (!AsksAboutPhysicalDevices(extension.extensionName)) translated.push_back(extension);
  }
  return LieAboutExtensions(*device.plan, translated);
}

}  // namespace heapbroker::faults

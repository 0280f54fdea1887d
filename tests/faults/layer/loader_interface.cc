// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Where the loader comes in.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/objects.h"

namespace heapbroker::faults {
namespace {

PFN_vkVoidFunction Find(std::initializer_list<absl::Span<const EntryPoint>> tables,
                        absl::string_view name) {
  for (const absl::Span<const EntryPoint> table : tables) {
    for (const EntryPoint& entry : table) {
      if (name == entry.name) return entry.function;
    }
  }
  return nullptr;
}

PFN_vkVoidFunction FindOfDevice(absl::string_view name) {
  return Find({DeviceCalls(), MemoryCalls(), RequirementCalls(), ObjectCalls(), QueueCalls(),
               QueueFamilyCalls()},
              name);
}

// All of these take a VkPhysicalDevice, which nothing below this layer knows.
bool AsksAboutPhysicalDevice(absl::string_view name) {
  return absl::StartsWith(name, "vkGetPhysicalDevice") ||
         absl::StartsWith(name, "vkEnumeratePhysicalDevice");
}

PFN_vkVoidFunction GetDeviceProcAddr(VkDevice device, const char* name) {
  if (absl::string_view(name) == "vkGetDeviceProcAddr") {
    return reinterpret_cast<PFN_vkVoidFunction>(GetDeviceProcAddr);
  }
  // Null also for what this layer has and the device does not.
  const PFN_vkVoidFunction next = DeviceOf(device).next().GetDeviceProcAddr(device, name);
  const PFN_vkVoidFunction own = FindOfDevice(name);
  return next != nullptr && own != nullptr ? own : next;
}

PFN_vkVoidFunction GetInstanceProcAddr(VkInstance instance, const char* name) {
  if (absl::string_view(name) == "vkGetInstanceProcAddr") {
    return reinterpret_cast<PFN_vkVoidFunction>(GetInstanceProcAddr);
  }
  if (absl::string_view(name) == "vkGetDeviceProcAddr") {
    return reinterpret_cast<PFN_vkVoidFunction>(GetDeviceProcAddr);
  }
  const PFN_vkVoidFunction of_instance = Find({InstanceCalls(), PhysicalDeviceCalls()}, name);
  // The loader asks for vkCreateInstance without an instance.
  if (instance == VK_NULL_HANDLE) return of_instance;
  const PFN_vkVoidFunction next = InstanceOf(instance).next.GetInstanceProcAddr(instance, name);
  if (next == nullptr) return nullptr;
  if (of_instance != nullptr) return of_instance;
  if (AsksAboutPhysicalDevice(name)) return nullptr;
  const PFN_vkVoidFunction of_device = FindOfDevice(name);
  return of_device != nullptr ? of_device : next;
}

PFN_vkVoidFunction GetPhysicalDeviceProcAddr(VkInstance, const char* name) {
  return Find({PhysicalDeviceCalls()}, name);
}

}  // namespace
}  // namespace heapbroker::faults

// The only function that is exported.
extern "C" VK_LAYER_EXPORT VkResult
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* interface) {
  constexpr uint32_t kVersion = 2;
  if (interface->loaderLayerInterfaceVersion < kVersion) return VK_ERROR_INITIALIZATION_FAILED;
  interface->loaderLayerInterfaceVersion = kVersion;
  interface->pfnGetInstanceProcAddr = heapbroker::faults::GetInstanceProcAddr;
  interface->pfnGetDeviceProcAddr = heapbroker::faults::GetDeviceProcAddr;
  interface->pfnGetPhysicalDeviceProcAddr = heapbroker::faults::GetPhysicalDeviceProcAddr;
  return VK_SUCCESS;
}

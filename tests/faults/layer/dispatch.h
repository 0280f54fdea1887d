// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The next layer's, or the driver's, functions.
#ifndef TESTS_FAULTS_LAYER_DISPATCH_H_
#define TESTS_FAULTS_LAYER_DISPATCH_H_

#include <vulkan/vulkan.h>

namespace heapbroker::faults {

// clang-format off
#define HB_INSTANCE_FUNCTIONS(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(EnumerateDeviceExtensionProperties) \
  X(EnumerateDeviceLayerProperties) X(GetPhysicalDeviceToolProperties) \
  X(GetPhysicalDeviceFeatures) X(GetPhysicalDeviceFormatProperties) \
  X(GetPhysicalDeviceImageFormatProperties) X(GetPhysicalDeviceProperties) \
  X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceMemoryProperties) \
  X(GetPhysicalDeviceSparseImageFormatProperties)

// With a second name, which ends in KHR and came first.
#define HB_PROMOTED_INSTANCE_FUNCTIONS(X) \
  X(EnumeratePhysicalDeviceGroups) \
  X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceProperties2) \
  X(GetPhysicalDeviceFormatProperties2) X(GetPhysicalDeviceImageFormatProperties2) \
  X(GetPhysicalDeviceQueueFamilyProperties2) X(GetPhysicalDeviceMemoryProperties2) \
  X(GetPhysicalDeviceSparseImageFormatProperties2) X(GetPhysicalDeviceExternalBufferProperties) \
  X(GetPhysicalDeviceExternalFenceProperties) X(GetPhysicalDeviceExternalSemaphoreProperties)

#define HB_DEVICE_FUNCTIONS(X) \
  X(DestroyDevice) X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) \
  X(GetMemoryFdKHR) X(GetMemoryFdPropertiesKHR) X(GetMemoryHostPointerPropertiesEXT) \
  X(CreateBuffer) X(DestroyBuffer) X(BindBufferMemory) \
  X(GetBufferMemoryRequirements) X(GetImageMemoryRequirements) \
  X(CreateFence) X(DestroyFence) X(WaitForFences) X(CreateCommandPool) X(DestroyCommandPool) \
  X(GetDeviceQueue) X(GetDeviceQueue2) X(CmdPipelineBarrier) \
  X(QueueSubmit) X(QueueBindSparse) X(QueueWaitIdle) X(DeviceWaitIdle)

#define HB_PROMOTED_DEVICE_FUNCTIONS(X) \
  X(BindBufferMemory2) X(GetBufferMemoryRequirements2) X(GetImageMemoryRequirements2) \
  X(GetDeviceBufferMemoryRequirements) X(GetDeviceImageMemoryRequirements) X(QueueSubmit2) \
  X(CmdPipelineBarrier2)
// clang-format on

// A member for each, with Vulkan's name less the "vk"; null where the next one
// does not have it.
struct InstanceDispatch {
#define HB_MEMBER(name) PFN_vk##name name = nullptr;
  HB_INSTANCE_FUNCTIONS(HB_MEMBER)
  HB_PROMOTED_INSTANCE_FUNCTIONS(HB_MEMBER)
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;

  static InstanceDispatch Load(VkInstance instance, PFN_vkGetInstanceProcAddr next);
};

struct DeviceDispatch {
  HB_DEVICE_FUNCTIONS(HB_MEMBER)
  HB_PROMOTED_DEVICE_FUNCTIONS(HB_MEMBER)
#undef HB_MEMBER
  PFN_vkGetDeviceProcAddr GetDeviceProcAddr = nullptr;

  static DeviceDispatch Load(VkDevice device, PFN_vkGetDeviceProcAddr next);
};

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_DISPATCH_H_

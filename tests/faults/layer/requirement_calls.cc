// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <vulkan/vulkan.h>

#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/objects.h"
#include "tests/faults/plan/lies.h"

namespace heapbroker::faults {
namespace {

void GetBufferMemoryRequirements(VkDevice handle, VkBuffer buffer,
                                 VkMemoryRequirements* requirements) {
  Device& device = DeviceOf(handle);
  device.OnCall(Function::kGetBufferMemoryRequirements);
  device.next().GetBufferMemoryRequirements(handle, buffer, requirements);
  LieAboutRequirements(device.plan(), *requirements);
}

void GetBufferMemoryRequirements2(VkDevice handle, const VkBufferMemoryRequirementsInfo2* info,
                                  VkMemoryRequirements2* requirements) {
  Device& device = DeviceOf(handle);
  device.OnCall(Function::kGetBufferMemoryRequirements);
  device.next().GetBufferMemoryRequirements2(handle, info, requirements);
  LieAboutRequirements(device.plan(), requirements->memoryRequirements);
}

void GetDeviceBufferMemoryRequirements(VkDevice handle,
                                       const VkDeviceBufferMemoryRequirements* info,
                                       VkMemoryRequirements2* requirements) {
  Device& device = DeviceOf(handle);
  device.OnCall(Function::kGetBufferMemoryRequirements);
  device.next().GetDeviceBufferMemoryRequirements(handle, info, requirements);
  LieAboutRequirements(device.plan(), requirements->memoryRequirements);
}

void GetImageMemoryRequirements(VkDevice handle, VkImage image,
                                VkMemoryRequirements* requirements) {
  const Device& device = DeviceOf(handle);
  device.next().GetImageMemoryRequirements(handle, image, requirements);
  LieAboutRequirements(device.plan(), *requirements);
}

void GetImageMemoryRequirements2(VkDevice handle, const VkImageMemoryRequirementsInfo2* info,
                                 VkMemoryRequirements2* requirements) {
  const Device& device = DeviceOf(handle);
  device.next().GetImageMemoryRequirements2(handle, info, requirements);
  LieAboutRequirements(device.plan(), requirements->memoryRequirements);
}

void GetDeviceImageMemoryRequirements(VkDevice handle, const VkDeviceImageMemoryRequirements* info,
                                      VkMemoryRequirements2* requirements) {
  const Device& device = DeviceOf(handle);
  device.next().GetDeviceImageMemoryRequirements(handle, info, requirements);
  LieAboutRequirements(device.plan(), requirements->memoryRequirements);
}

}  // namespace

absl::Span<const EntryPoint> RequirementCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(GetBufferMemoryRequirements),
      HB_PROMOTED_ENTRY(GetBufferMemoryRequirements2),
      HB_PROMOTED_ENTRY(GetDeviceBufferMemoryRequirements),
      HB_ENTRY(GetImageMemoryRequirements),
      HB_PROMOTED_ENTRY(GetImageMemoryRequirements2),
      HB_PROMOTED_ENTRY(GetDeviceImageMemoryRequirements),
  };
  return kCalls;
}

}  // namespace heapbroker::faults

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The physical devices that a plan makes of the driver's.
#ifndef TESTS_FAULTS_LAYER_PHYSICAL_DEVICES_H_
#define TESTS_FAULTS_LAYER_PHYSICAL_DEVICES_H_

#include <vulkan/vulkan.h>

#include <vector>

#include "tests/faults/layer/objects.h"

namespace heapbroker::faults {

// One for each device section of the plan, the same ones every time. Errors are
// the driver's, or VK_ERROR_INITIALIZATION_FAILED, with a complaint, where the
// plan names a device or a memory type that the driver does not have.
VkResult ListPhysicalDevices(Instance& instance, std::vector<PhysicalDevice*>& devices);

// Heaps and types as callers see them.
VkPhysicalDeviceMemoryProperties ShownMemory(const PhysicalDevice& device);

// The driver's extensions, and what callers see of them: the plan's lies apart,
// none that brings a question about physical devices that this layer does not
// translate.
VkResult RealExtensions(const PhysicalDevice& device, std::vector<VkExtensionProperties>& real);
std::vector<VkExtensionProperties> ShownExtensions(const PhysicalDevice& device,
                                                   const std::vector<VkExtensionProperties>& real);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_PHYSICAL_DEVICES_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The arithmetic between what a device is said to be and what it is.
#ifndef TESTS_FAULTS_PLAN_LIES_H_
#define TESTS_FAULTS_PLAN_LIES_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <vector>

#include "tests/faults/plan/fault_plan.h"

namespace heapbroker::faults {

// Fill in what the plan says in place of the driver's answer. Only Vulkan's
// structures are touched, so no device is needed.

void LieAboutProperties(const DevicePlan& plan, VkPhysicalDeviceProperties& properties);
// Every structure of a chain of VkPhysicalDeviceProperties2 that has an identity
// or a limit in it.
void LieAboutPropertiesChain(const DevicePlan& plan, void* chain);
void LieAboutMemory(const DevicePlan& plan, VkPhysicalDeviceMemoryProperties& memory);
void LieAboutExternalMemory(const DevicePlan& plan, VkExternalMemoryHandleTypeFlagBits handle,
                            VkExternalMemoryProperties& properties);
// Sizes and memory types of a buffer or an image.
void LieAboutRequirements(const DevicePlan& plan, VkMemoryRequirements& requirements);

// The driver's extensions without the hidden ones and with the added ones.
std::vector<VkExtensionProperties> LieAboutExtensions(
    const DevicePlan& plan, const std::vector<VkExtensionProperties>& real);

// The driver's memory types as those of the plan that stand for one of them.
uint32_t PlannedTypeBits(const DevicePlan& plan, uint32_t real_bits);
// The driver's type behind one of the plan; itself where the plan has none.
// `type` must be one of the plan's.
uint32_t RealType(const DevicePlan& plan, uint32_t type);

// `size` padded; saturates at the largest number.
VkDeviceSize PaddedSize(const DevicePlan& plan, VkDeviceSize size);
// Whether PaddedSize can have this result.
bool IsPaddedSize(const DevicePlan& plan, VkDeviceSize size);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_LIES_H_

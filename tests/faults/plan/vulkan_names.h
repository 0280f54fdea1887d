// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Names in plans, and the Vulkan values that they stand for.
#ifndef TESTS_FAULTS_PLAN_VULKAN_NAMES_H_
#define TESTS_FAULTS_PLAN_VULKAN_NAMES_H_

#include <vulkan/vulkan.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace heapbroker::faults {

// All of them: INVALID_ARGUMENT, with what is allowed, for anything else.

// "VK_ERROR_DEVICE_LOST" or "-4": an error, not a success code.
absl::StatusOr<VkResult> ParseError(absl::string_view text);
// "discrete", "integrated", "virtual", "cpu", "other".
absl::StatusOr<VkPhysicalDeviceType> ParseDeviceType(absl::string_view text);
// "device_local|host_visible", "none".
absl::StatusOr<VkMemoryPropertyFlags> ParseMemoryFlags(absl::string_view text);
// "device_local", "multi_instance", "none".
absl::StatusOr<VkMemoryHeapFlags> ParseHeapFlags(absl::string_view text);
// "compute|transfer".
absl::StatusOr<VkQueueFlags> ParseQueueFlags(absl::string_view text);
// "opaque_fd", "dma_buf", "host_allocation".
absl::StatusOr<VkExternalMemoryHandleTypeFlagBits> ParseHandleType(absl::string_view text);

// "VK_ERROR_DEVICE_LOST"; of others, "VkResult -5".
std::string ErrorName(VkResult result);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_VULKAN_NAMES_H_

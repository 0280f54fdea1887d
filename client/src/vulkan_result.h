// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// VkResult as a status.
#ifndef CLIENT_SRC_VULKAN_RESULT_H_
#define CLIENT_SRC_VULKAN_RESULT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

// "`call`: `result by name`". OK for VK_SUCCESS, else
//   RESOURCE_EXHAUSTED   memory or the number of objects ran out
//   UNAVAILABLE          the device is lost, or no driver can be used
//   FAILED_PRECONDITION  a layer, extension or feature is not present
//   INTERNAL             any other
absl::Status VulkanStatus(VkResult result, absl::string_view call);

}  // namespace heapbroker
#endif  // CLIENT_SRC_VULKAN_RESULT_H_

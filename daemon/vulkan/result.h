// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the driver said, as a status.
#ifndef DAEMON_VULKAN_RESULT_H_
#define DAEMON_VULKAN_RESULT_H_

#include <vulkan/vulkan.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace heapbroker {

// "VK_ERROR_DEVICE_LOST"; of a value that is newer than this code, "VkResult -5".
std::string ResultName(VkResult result);

// OK for VK_SUCCESS. Otherwise an error whose text names `call`, the result, and
// what to do about it where that is known:
//   RESOURCE_EXHAUSTED   out of host or device memory, or of descriptors
//   UNAVAILABLE          the device is lost
//   FAILED_PRECONDITION  the driver does not fit: version, extension, layer, feature
//   INTERNAL             anything else; also a success code other than VK_SUCCESS,
//                        since no call here is one that has such an outcome
absl::Status ResultToStatus(VkResult result, absl::string_view call);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_RESULT_H_

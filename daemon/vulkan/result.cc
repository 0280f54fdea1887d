// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/result.h"

#include "absl/strings/str_cat.h"

namespace heapbroker {

std::string ResultName(VkResult result) {
  switch (result) {
#define HB_RESULT(name) \
  case name:            \
    return #name
    HB_RESULT(VK_SUCCESS);
    HB_RESULT(VK_NOT_READY);
    HB_RESULT(VK_TIMEOUT);
    HB_RESULT(VK_EVENT_SET);
    HB_RESULT(VK_EVENT_RESET);
    HB_RESULT(VK_INCOMPLETE);
    HB_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY);
    HB_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    HB_RESULT(VK_ERROR_INITIALIZATION_FAILED);
    HB_RESULT(VK_ERROR_DEVICE_LOST);
    HB_RESULT(VK_ERROR_MEMORY_MAP_FAILED);
    HB_RESULT(VK_ERROR_LAYER_NOT_PRESENT);
    HB_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT);
    HB_RESULT(VK_ERROR_FEATURE_NOT_PRESENT);
    HB_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER);
    HB_RESULT(VK_ERROR_TOO_MANY_OBJECTS);
    HB_RESULT(VK_ERROR_FORMAT_NOT_SUPPORTED);
    HB_RESULT(VK_ERROR_FRAGMENTED_POOL);
    HB_RESULT(VK_ERROR_UNKNOWN);
    HB_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY);
    HB_RESULT(VK_ERROR_INVALID_EXTERNAL_HANDLE);
    HB_RESULT(VK_ERROR_FRAGMENTATION);
    HB_RESULT(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS);
    HB_RESULT(VK_ERROR_NOT_PERMITTED_KHR);
#undef HB_RESULT
    default:
      // Results of windows, displays and video, which no call here can return.
      return absl::StrCat("VkResult ", static_cast<int>(result));
  }
}

absl::Status ResultToStatus(VkResult result, absl::string_view call) {
  const std::string said = absl::StrCat(call, " failed with ", ResultName(result));
  switch (result) {
    case VK_SUCCESS:
      return absl::OkStatus();
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return absl::ResourceExhaustedError(
          absl::StrCat(said, ": the machine, or this process's limit, is out of memory"));
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return absl::ResourceExhaustedError(
          absl::StrCat(said, ": the driver is out of device memory"));
    case VK_ERROR_TOO_MANY_OBJECTS:
      return absl::ResourceExhaustedError(
          absl::StrCat(said,
                       ": too many allocations or open descriptors; the descriptor limit "
                       "is RLIMIT_NOFILE (ulimit -n, LimitNOFILE=)"));
    case VK_ERROR_FRAGMENTATION:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return absl::ResourceExhaustedError(said);
    case VK_ERROR_DEVICE_LOST:
      return absl::UnavailableError(
          absl::StrCat(said,
                       ": the device is lost; restart the daemon, and look into the "
                       "kernel's log for the cause"));
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_FORMAT_NOT_SUPPORTED:
      return absl::FailedPreconditionError(said);
    default:
      return absl::InternalError(said);
  }
}

}  // namespace heapbroker

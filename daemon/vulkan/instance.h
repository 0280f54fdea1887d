// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's connection to the Vulkan loader.
#ifndef DAEMON_VULKAN_INSTANCE_H_
#define DAEMON_VULKAN_INSTANCE_H_

#include <vulkan/vulkan.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace heapbroker {

// Owns a VkInstance. No surface, display or debug extension is enabled, so a
// machine without any of these serves as well as one with them; layers come only
// from the environment (VK_INSTANCE_LAYERS).
//
// Move-only; a moved-from instance owns nothing. Not thread-safe while it is
// made, moved or destroyed. Must outlive the devices that are made from it.
class VulkanInstance {
 public:
  // The oldest version that has external memory and device UUIDs in its core.
  static constexpr uint32_t kLowestApiVersion = VK_API_VERSION_1_1;
  // The newest version that this code knows; a newer loader is asked for this.
  static constexpr uint32_t kHighestApiVersion = VK_API_VERSION_1_3;

  //   FAILED_PRECONDITION  no driver is installed, or the loader is older than
  //                        kLowestApiVersion; says what to install
  //   others               as ResultToStatus
  static absl::StatusOr<VulkanInstance> Create();

  VulkanInstance(VulkanInstance&& other) noexcept;
  VulkanInstance& operator=(VulkanInstance&& other) noexcept;
  ~VulkanInstance();

  VkInstance handle() const { return handle_; }
  // What the application was declared to use: no device does more for it.
  uint32_t api_version() const { return api_version_; }

 private:
  VulkanInstance(VkInstance handle, uint32_t api_version)
      : handle_(handle), api_version_(api_version) {}

  VkInstance handle_ = VK_NULL_HANDLE;
  uint32_t api_version_ = 0;
};

// What to check on a machine where Vulkan shows no device.
extern const char kNoDeviceAdvice[];

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_INSTANCE_H_

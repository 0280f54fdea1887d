// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// An opened Vulkan device.
#ifndef DAEMON_VULKAN_DEVICE_H_
#define DAEMON_VULKAN_DEVICE_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/device_info.h"
#include "daemon/vulkan/device_choice.h"
#include "daemon/vulkan/device_snapshot.h"
#include "daemon/vulkan/instance.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Owns a VkInstance, a VkDevice of it, and with that its one queue.
//
// Move-only; what is made from the device must go before it does, and a
// moved-from device may only be destroyed. The const methods are thread-safe;
// the queue itself may be used by one thread at a time.
class VulkanDevice {
 public:
  // `snapshot` must have been read from `instance` and be usable (CheckUsable).
  //   FAILED_PRECONDITION  it is not, or the driver refuses an extension
  //   others               as ResultToStatus
  static absl::StatusOr<VulkanDevice> Open(VulkanInstance instance, const DeviceSnapshot& snapshot);

  VulkanDevice(VulkanDevice&& other) noexcept;
  VulkanDevice& operator=(VulkanDevice&& other) noexcept;
  ~VulkanDevice();

  VkDevice handle() const { return handle_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return queue_family_; }
  const DeviceInfo& info() const { return info_; }
  // The driver gives zeros to whoever allocates, and clearing them again would
  // only make every page resident.
  bool fresh_memory_is_zero() const { return fresh_memory_is_zero_; }

  // Exports memory that was allocated for opaque descriptors. Every call makes
  // another descriptor; it has close-on-exec. Errors as ResultToStatus;
  // RESOURCE_EXHAUSTED also where a driver hands out none and claims success.
  absl::StatusOr<UniqueFd> ExportMemory(VkDeviceMemory memory) const;

 private:
  VulkanDevice(VulkanInstance instance, VkDevice handle, uint32_t queue_family);

  // Before the device, so that it goes after it.
  VulkanInstance instance_;
  VkDevice handle_ = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  PFN_vkGetMemoryFdKHR get_memory_fd_ = nullptr;
  DeviceInfo info_;
  bool fresh_memory_is_zero_ = false;
};

// Whether `driver` is known to hand out zeroed memory: lavapipe's is a new memory
// file, which the kernel zeroes. Unknown drivers are not.
bool DriverGivesZeros(std::optional<VkDriverId> driver);

struct OpenedDevice {
  VulkanDevice device;
  std::string warning;  // As DeviceChoice::warning.
};

// Everything from the loader to the device that `selector` means. Errors as
// VulkanInstance::Create, ReadDevices, ChooseDevice and VulkanDevice::Open.
absl::StatusOr<OpenedDevice> OpenDevice(const DeviceSelector& selector);

struct OpenedDevices {
  // DeviceInfo::index is the position in here.
  std::vector<VulkanDevice> devices;
  std::vector<std::string> warnings;  // For people; whole sentences.
};

// The devices that `selectors` mean, in their order; each is a DeviceSelector::text.
// Without any, all usable hardware devices, or, where there is none, the best
// software device, with a warning. One instance serves them all. A device that was
// named and cannot be opened is an error; one of the unnamed is left out with a
// warning, as long as another is there.
// Errors as VulkanInstance::Create, ReadDevices, ChooseDevices and VulkanDevice::Open.
absl::StatusOr<OpenedDevices> OpenDevices(const std::vector<std::string>& selectors,
                                          bool require_hardware);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_H_

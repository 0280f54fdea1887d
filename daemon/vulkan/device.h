// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// An opened Vulkan device.
#ifndef DAEMON_VULKAN_DEVICE_H_
#define DAEMON_VULKAN_DEVICE_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_info.h"
#include "daemon/vulkan/device_choice.h"
#include "daemon/vulkan/device_snapshot.h"
#include "daemon/vulkan/instance.h"

namespace heapbroker {

// Owns a VkDevice and with that its one queue, and a share of its VkInstance.
//
// Move-only; what is made from the device must go before it does and before it is
// moved, and a moved-from device may only be destroyed. The const methods are
// thread-safe; the queue itself may be used by one thread at a time.
class VulkanDevice {
 public:
  // `snapshot` must have been read from `instance` and be usable (CheckUsable).
  // Every handle type and memory type that the driver claims to export is tried
  // once, and so are device addresses: info() has what worked. `index` becomes
  // info().index.
  //   FAILED_PRECONDITION  it is not usable, nothing that was tried worked, or the
  //                        driver refuses an extension
  //   others               as ResultToStatus
  static absl::StatusOr<VulkanDevice> Open(std::shared_ptr<const VulkanInstance> instance,
                                           const DeviceSnapshot& snapshot, uint32_t index = 0);

  VkDevice handle() const { return handle_.get(); }
  VkPhysicalDevice physical_device() const { return physical_device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return queue_family_; }
  PFN_vkGetMemoryFdKHR get_memory_fd() const { return get_memory_fd_; }
  const DeviceInfo& info() const { return info_; }
  // For the log: what the driver claims and did not do when it was tried.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The driver gives zeros to whoever allocates, and clearing them again would
  // only make every page resident.
  bool fresh_memory_is_zero() const { return fresh_memory_is_zero_; }
  bool has_memory_budget() const { return has_memory_budget_; }
  // The queue family that blocks are released to, which is who may import them:
  // VK_QUEUE_FAMILY_EXTERNAL for opaque descriptors, since only the same device and
  // driver can; VK_QUEUE_FAMILY_FOREIGN_EXT for dma-bufs, where the device has it.
  uint32_t importers_queue_family(HandleType type) const {
    return type == HandleType::kDmaBuf && has_foreign_queue_family_ ? VK_QUEUE_FAMILY_FOREIGN_EXT
                                                                    : VK_QUEUE_FAMILY_EXTERNAL;
  }

 private:
  // Keeps the instance until the device is gone, also when one device is assigned
  // to another.
  struct Destroyer {
    std::shared_ptr<const VulkanInstance> instance;
    void operator()(VkDevice device) const { vkDestroyDevice(device, nullptr); }
  };

  VulkanDevice() = default;

  std::unique_ptr<VkDevice_T, Destroyer> handle_;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  uint32_t queue_family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  PFN_vkGetMemoryFdKHR get_memory_fd_ = nullptr;
  DeviceInfo info_;
  std::vector<std::string> warnings_;
  bool fresh_memory_is_zero_ = false;
  bool has_memory_budget_ = false;
  bool has_foreign_queue_family_ = false;
};

// Whether `driver` is known to hand out zeroed memory: lavapipe's is a new memory
// file, which the kernel zeroes. Unknown drivers are not.
bool DriverGivesZeros(std::optional<VkDriverId> driver);

struct OpenedDevice {
  VulkanDevice device;
  std::string warning;  // DeviceChoice::warning and VulkanDevice::warnings().
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

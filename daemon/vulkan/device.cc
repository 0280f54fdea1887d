// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/device_description.h"
#include "daemon/vulkan/external_buffer.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
namespace {

// The memory types of a buffer follow from its usage and handle types, not from
// its size, so any size answers for all.
constexpr Bytes kProbeSize = KiB(64);

absl::StatusOr<VkDevice> CreateDevice(const DeviceSnapshot& snapshot, uint32_t queue_family) {
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const char* const extensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = 1;
  create.ppEnabledExtensionNames = extensions;
  VkDevice device = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkCreateDevice(snapshot.handle, &create, nullptr, &device), "vkCreateDevice"));
  return device;
}

}  // namespace

absl::StatusOr<VulkanDevice> VulkanDevice::Open(VulkanInstance instance,
                                                const DeviceSnapshot& snapshot) {
  if (absl::Status usable = CheckUsable(snapshot); !usable.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("device '", snapshot.name, "' ", usable.message()));
  }
  const uint32_t queue_family = *ChooseQueueFamily(snapshot);
  HB_ASSIGN_OR_RETURN(const VkDevice handle, CreateDevice(snapshot, queue_family));
  VulkanDevice device(std::move(instance), handle, queue_family);
  if (device.get_memory_fd_ == nullptr) {
    return absl::InternalError(absl::StrCat("device '", snapshot.name,
                                            "' has no vkGetMemoryFdKHR, although it offers ",
                                            VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME));
  }
  HB_ASSIGN_OR_RETURN(const ExternalBuffer probe, ExternalBuffer::Create(handle, kProbeSize));
  device.info_ = DescribeDevice(snapshot, probe.requirements().memoryTypeBits);
  device.fresh_memory_is_zero_ = DriverGivesZeros(snapshot.driver_id);
  return device;
}

VulkanDevice::VulkanDevice(VulkanInstance instance, VkDevice handle, uint32_t queue_family)
    : instance_(std::move(instance)), handle_(handle), queue_family_(queue_family) {
  vkGetDeviceQueue(handle_, queue_family_, 0, &queue_);
  get_memory_fd_ =
      reinterpret_cast<PFN_vkGetMemoryFdKHR>(vkGetDeviceProcAddr(handle_, "vkGetMemoryFdKHR"));
}

VulkanDevice::VulkanDevice(VulkanDevice&& other) noexcept
    : instance_(std::move(other.instance_)),
      handle_(std::exchange(other.handle_, VK_NULL_HANDLE)),
      queue_family_(other.queue_family_),
      queue_(other.queue_),
      get_memory_fd_(other.get_memory_fd_),
      info_(std::move(other.info_)),
      fresh_memory_is_zero_(other.fresh_memory_is_zero_) {}

VulkanDevice& VulkanDevice::operator=(VulkanDevice&& other) noexcept {
  std::swap(instance_, other.instance_);
  std::swap(handle_, other.handle_);
  std::swap(queue_family_, other.queue_family_);
  std::swap(queue_, other.queue_);
  std::swap(get_memory_fd_, other.get_memory_fd_);
  std::swap(info_, other.info_);
  std::swap(fresh_memory_is_zero_, other.fresh_memory_is_zero_);
  return *this;
}

VulkanDevice::~VulkanDevice() {
  if (handle_ != VK_NULL_HANDLE) vkDestroyDevice(handle_, nullptr);
}

absl::StatusOr<UniqueFd> VulkanDevice::ExportMemory(VkDeviceMemory memory) const {
  VkMemoryGetFdInfoKHR get{};
  get.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  get.memory = memory;
  get.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  HB_RETURN_IF_ERROR(ResultToStatus(get_memory_fd_(handle_, &get, &fd), "vkGetMemoryFdKHR"));
  // What lavapipe does at the descriptor limit: it fails to duplicate its own and
  // says nothing about it.
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        "vkGetMemoryFdKHR gave no descriptor, although it reported success: the process is "
        "probably at its limit of open descriptors (RLIMIT_NOFILE; ulimit -n, LimitNOFILE=)");
  }
  UniqueFd exported(fd);
  // Drivers give the descriptor without it.
  if (fcntl(exported.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return absl::InternalError(
        absl::StrCat("the driver exported descriptor ", exported.get(),
                     ", on which close-on-exec cannot be set: ", std::strerror(errno)));
  }
  return exported;
}

bool DriverGivesZeros(std::optional<VkDriverId> driver) {
  return driver == VK_DRIVER_ID_MESA_LLVMPIPE;
}

absl::StatusOr<OpenedDevice> OpenDevice(const DeviceSelector& selector) {
  HB_ASSIGN_OR_RETURN(VulkanInstance instance, VulkanInstance::Create());
  HB_ASSIGN_OR_RETURN(const std::vector<DeviceSnapshot> snapshots, ReadDevices(instance));
  HB_ASSIGN_OR_RETURN(DeviceChoice choice, ChooseDevice(snapshots, selector));
  HB_ASSIGN_OR_RETURN(VulkanDevice device,
                      VulkanDevice::Open(std::move(instance), snapshots[choice.index]));
  return OpenedDevice{std::move(device), std::move(choice.warning)};
}

}  // namespace heapbroker

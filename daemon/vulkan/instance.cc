// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/instance.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {

const char kNoDeviceAdvice[] =
    "Check that a driver is installed (on Debian mesa-vulkan-drivers, which has a software device "
    "too, or the vendor's package), that this user may open the device nodes (/dev/dri/renderD*: "
    "group render; /dev/nvidia*), and that VK_DRIVER_FILES and VK_ICD_FILENAMES, if set, name "
    "driver manifests that exist. `vulkaninfo --summary` shows what the loader finds";

absl::StatusOr<VulkanInstance> VulkanInstance::Create() {
  uint32_t loader_version = 0;
  if (VkResult result = vkEnumerateInstanceVersion(&loader_version); result != VK_SUCCESS) {
    return ResultToStatus(result, "vkEnumerateInstanceVersion");
  }
  if (loader_version < kLowestApiVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the Vulkan loader (libvulkan.so.1) has version ", VK_API_VERSION_MAJOR(loader_version),
        ".", VK_API_VERSION_MINOR(loader_version), "; 1.1 or newer is needed: update it"));
  }
  const uint32_t api_version = std::min(loader_version, kHighestApiVersion);

  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "heapbrokerd";
  application.apiVersion = api_version;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;

  VkInstance handle = VK_NULL_HANDLE;
  const VkResult result = vkCreateInstance(&create, nullptr, &handle);
  // The loader's answer where no driver could be loaded at all.
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return absl::FailedPreconditionError(
        absl::StrCat("no Vulkan driver could be loaded (vkCreateInstance: ", ResultName(result),
                     "). ", kNoDeviceAdvice));
  }
  if (result != VK_SUCCESS) return ResultToStatus(result, "vkCreateInstance");
  return VulkanInstance(handle, api_version);
}

VulkanInstance::VulkanInstance(VulkanInstance&& other) noexcept
    : handle_(std::exchange(other.handle_, VK_NULL_HANDLE)), api_version_(other.api_version_) {}

VulkanInstance& VulkanInstance::operator=(VulkanInstance&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(api_version_, other.api_version_);
  return *this;
}

VulkanInstance::~VulkanInstance() {
  if (handle_ != VK_NULL_HANDLE) vkDestroyInstance(handle_, nullptr);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/src/importing_device.h"
#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

absl::StatusOr<VkInstance> CreateInstance() {
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pEngineName = "heapbroker",
                                      .apiVersion = kRequiredVulkanVersion};
  const absl::Span<const char* const> extensions = RequiredInstanceExtensions();
  const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                  .pApplicationInfo = &application,
                                  .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
                                  .ppEnabledExtensionNames = extensions.data()};
  VkInstance instance = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(VulkanStatus(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance"));
  return instance;
}

absl::StatusOr<VkPhysicalDevice> ChooseDevice(VkInstance instance, const BrokerDevice& wanted) {
  uint32_t count = 0;
  HB_RETURN_IF_ERROR(VulkanStatus(vkEnumeratePhysicalDevices(instance, &count, nullptr),
                                  "vkEnumeratePhysicalDevices"));
  std::vector<VkPhysicalDevice> devices(count);
  const VkResult result = vkEnumeratePhysicalDevices(instance, &count, devices.data());
  if (result != VK_INCOMPLETE) {
    HB_RETURN_IF_ERROR(VulkanStatus(result, "vkEnumeratePhysicalDevices"));
  }
  devices.resize(count);
  std::vector<std::string> seen;
  for (const VkPhysicalDevice device : devices) {
    const ImportingDevice snapshot = ReadImportingDevice(device);
    if (snapshot.device_uuid == wanted.device_uuid && snapshot.driver_uuid == wanted.driver_uuid) {
      return device;
    }
    seen.push_back(absl::StrCat(snapshot.name, " (device UUID ", FormatUuid(snapshot.device_uuid),
                                ", driver UUID ", FormatUuid(snapshot.driver_uuid), ")"));
  }
  return absl::NotFoundError(
      absl::StrCat("the broker's device is ", wanted.name, " (device UUID ",
                   FormatUuid(wanted.device_uuid), ", driver UUID ", FormatUuid(wanted.driver_uuid),
                   ") and this process sees ", seen.empty() ? "none" : absl::StrJoin(seen, ", "),
                   "; give it access to the device node and the broker's driver"));
}

std::optional<uint32_t> FindComputeFamily(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) return i;
  }
  return std::nullopt;
}

absl::StatusOr<VkDevice> CreateDevice(VkPhysicalDevice physical_device, uint32_t queue_family) {
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .queueFamilyIndex = queue_family,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  const absl::Span<const char* const> extensions = RequiredDeviceExtensions();
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .queueCreateInfoCount = 1,
                                .pQueueCreateInfos = &queue,
                                .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
                                .ppEnabledExtensionNames = extensions.data()};
  VkDevice device = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkCreateDevice(physical_device, &info, nullptr, &device), "vkCreateDevice"));
  return device;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MinimalDevice>> MinimalDevice::Create(const BrokerDevice& device) {
  // Owns what exists so far, so that every early return destroys it.
  std::unique_ptr<MinimalDevice> result(new MinimalDevice());
  VulkanContext& context = result->context_;
  HB_ASSIGN_OR_RETURN(context.instance, CreateInstance());
  HB_ASSIGN_OR_RETURN(context.physical_device, ChooseDevice(context.instance, device));
  const std::optional<uint32_t> family = FindComputeFamily(context.physical_device);
  if (!family) {
    return absl::NotFoundError(absl::StrCat(device.name, " has no queue that can compute"));
  }
  context.queue_family = *family;
  HB_ASSIGN_OR_RETURN(context.device, CreateDevice(context.physical_device, *family));
  vkGetDeviceQueue(context.device, *family, 0, &context.queue);
  return result;
}

MinimalDevice::~MinimalDevice() {
  if (context_.device != VK_NULL_HANDLE) vkDestroyDevice(context_.device, nullptr);
  if (context_.instance != VK_NULL_HANDLE) vkDestroyInstance(context_.instance, nullptr);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/src/importing_device.h"
#include "client/src/queue_choice.h"
#include "client/src/vulkan_result.h"
#include "client/transport/process_mark.h"
#include "common/base/status_macros.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

// Device addresses are a part of it; whatever has 1.1 takes an application that
// says so.
constexpr uint32_t kUsedVulkanVersion = VK_API_VERSION_1_2;

absl::StatusOr<VkInstance> CreateInstance() {
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pEngineName = "heapbroker",
                                      .apiVersion = kUsedVulkanVersion};
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

std::optional<QueueChoice> ReadQueueChoice(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return ChooseQueues(families);
}

bool HasAll(VkPhysicalDevice device, absl::Span<const char* const> extensions) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> present(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, present.data());
  return std::all_of(extensions.begin(), extensions.end(), [&](absl::string_view wanted) {
    return std::any_of(present.begin(), present.end(), [&](const VkExtensionProperties& extension) {
      return extension.extensionName == wanted;
    });
  });
}

bool HasDeviceAddresses(VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(device, &properties);
  if (properties.apiVersion < VK_API_VERSION_1_2) return false;
  VkPhysicalDeviceBufferDeviceAddressFeatures address{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &address};
  vkGetPhysicalDeviceFeatures2(device, &features);
  return address.bufferDeviceAddress == VK_TRUE;
}

// As `context` says for what.
absl::StatusOr<VkDevice> CreateDevice(const VulkanContext& context, const QueueChoice& choice) {
  constexpr float kPriorities[] = {1.0f, 1.0f};
  const auto queues_of = [&](uint32_t family, uint32_t count) {
    return VkDeviceQueueCreateInfo{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                   .queueFamilyIndex = family,
                                   .queueCount = count,
                                   .pQueuePriorities = kPriorities};
  };
  const bool second_family = choice.transfer && choice.transfer->family != choice.compute.family;
  const bool second_queue = choice.transfer && !second_family;
  std::vector<VkDeviceQueueCreateInfo> queues = {
      queues_of(choice.compute.family, second_queue ? 2 : 1)};
  if (second_family) queues.push_back(queues_of(choice.transfer->family, 1));
  const absl::Span<const char* const> required = RequiredDeviceExtensions();
  std::vector<const char*> extensions(required.begin(), required.end());
  if (context.dma_bufs) {
    for (const char* extension : DmaBufDeviceExtensions()) extensions.push_back(extension);
  }
  VkPhysicalDeviceBufferDeviceAddressFeatures address{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
      .bufferDeviceAddress = VK_TRUE};
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .pNext = context.device_addresses ? &address : nullptr,
                                .queueCreateInfoCount = static_cast<uint32_t>(queues.size()),
                                .pQueueCreateInfos = queues.data(),
                                .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
                                .ppEnabledExtensionNames = extensions.data()};
  VkDevice device = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(VulkanStatus(vkCreateDevice(context.physical_device, &info, nullptr, &device),
                                  "vkCreateDevice"));
  return device;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MinimalDevice>> MinimalDevice::Create(const BrokerDevice& device) {
  // Owns what exists so far, so that every early return destroys it.
  std::unique_ptr<MinimalDevice> result(new MinimalDevice());
  result->forks_ = ForkCount();
  VulkanContext& context = result->context_;
  HB_ASSIGN_OR_RETURN(context.instance, CreateInstance());
  HB_ASSIGN_OR_RETURN(context.physical_device, ChooseDevice(context.instance, device));
  const std::optional<QueueChoice> queues = ReadQueueChoice(context.physical_device);
  if (!queues) {
    return absl::NotFoundError(absl::StrCat(device.name, " has no queue that can compute"));
  }
  context.queue_family = queues->compute.family;
  context.dma_bufs = HasAll(context.physical_device, DmaBufDeviceExtensions());
  context.device_addresses = HasDeviceAddresses(context.physical_device);
  HB_ASSIGN_OR_RETURN(context.device, CreateDevice(context, *queues));
  vkGetDeviceQueue(context.device, queues->compute.family, queues->compute.index, &context.queue);
  if (queues->transfer) {
    context.transfer_queue_family = queues->transfer->family;
    vkGetDeviceQueue(context.device, queues->transfer->family, queues->transfer->index,
                     &context.transfer_queue);
  }
  return result;
}

MinimalDevice::~MinimalDevice() {
  // A driver's threads are not there in a forked child, and its objects are the parent's.
  if (forks_ != ForkCount()) return;
  if (context_.device != VK_NULL_HANDLE) vkDestroyDevice(context_.device, nullptr);
  if (context_.instance != VK_NULL_HANDLE) vkDestroyInstance(context_.instance, nullptr);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/layer/calls.h"
#include "tests/faults/layer/chains.h"
#include "tests/faults/layer/objects.h"
#include "tests/faults/layer/physical_devices.h"

namespace heapbroker::faults {
namespace {

void Complain(const std::string& text) {
  std::fputs(absl::StrCat("VK_LAYER_HEAPBROKER_faults: ", text, "\n").c_str(), stderr);
}

// The loader's structure for the next layer; mutable, since each layer moves it on.
template <typename CreateInfo>
CreateInfo* FindLink(const void* chain, VkStructureType type) {
  for (const auto* at = FindInChain<CreateInfo>(chain, type); at != nullptr;
       at = FindInChain<CreateInfo>(at->pNext, type)) {
    if (at->function == VK_LAYER_LINK_INFO) return const_cast<CreateInfo*>(at);
  }
  return nullptr;
}

// Windows and displays bring questions about physical devices that this layer
// does not translate.
bool IsOffered(const char* instance_extension) {
  return !absl::StrContains(instance_extension, "_surface") &&
         !absl::StrContains(instance_extension, "_display") &&
         !absl::StrContains(instance_extension, "VK_NV_external_memory_capabilities");
}

VkResult CreateInstance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                        VkInstance* handle) {
  const absl::StatusOr<FaultState*> faults = FaultState::OfEnvironment();
  if (!faults.ok()) {
    Complain(std::string(faults.status().message()));
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
    if (IsOffered(info->ppEnabledExtensionNames[i])) continue;
    Complain(absl::StrCat(info->ppEnabledExtensionNames[i], " cannot be used with this layer"));
    return VK_ERROR_EXTENSION_NOT_PRESENT;
  }
  auto* const link = FindLink<VkLayerInstanceCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  if (const auto broken = (*faults)->OnCall(Function::kCreateInstance, nullptr)) {
    return broken->result;
  }
  const PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(next(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, allocator, handle);
  if (result != VK_SUCCESS) return result;
  auto instance = std::make_unique<Instance>();
  instance->handle = *handle;
  instance->next = InstanceDispatch::Load(*handle, next);
  instance->faults = *faults;
  AddInstance(std::move(instance));
  return VK_SUCCESS;
}

void DestroyInstance(VkInstance handle, const VkAllocationCallbacks* allocator) {
  if (handle == VK_NULL_HANDLE) return;
  const std::unique_ptr<Instance> instance = TakeInstance(handle);
  instance->next.DestroyInstance(handle, allocator);
}

VkResult EnumeratePhysicalDevices(VkInstance handle, uint32_t* count, VkPhysicalDevice* out) {
  std::vector<PhysicalDevice*> devices;
  const VkResult result = ListPhysicalDevices(InstanceOf(handle), devices);
  if (result != VK_SUCCESS) return result;
  std::vector<VkPhysicalDevice> handles;
  for (PhysicalDevice* device : devices) handles.push_back(device->handle());
  return ReturnList(handles, count, out);
}

// Each device is a group of its own.
VkResult EnumeratePhysicalDeviceGroups(VkInstance handle, uint32_t* count,
                                       VkPhysicalDeviceGroupProperties* out) {
  std::vector<PhysicalDevice*> devices;
  const VkResult result = ListPhysicalDevices(InstanceOf(handle), devices);
  if (result != VK_SUCCESS) return result;
  std::vector<VkPhysicalDeviceGroupProperties> groups;
  for (size_t i = 0; i < devices.size(); ++i) {
    VkPhysicalDeviceGroupProperties group{};
    group.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GROUP_PROPERTIES;
    // The caller's chain stays the caller's.
    if (out != nullptr && i < *count) group.pNext = out[i].pNext;
    group.physicalDeviceCount = 1;
    group.physicalDevices[0] = devices[i]->handle();
    groups.push_back(group);
  }
  return ReturnList(groups, count, out);
}

// While it lives, the group in the chain of a VkDeviceCreateInfo names the driver's
// devices.
class UnwrappedGroup {
 public:
  explicit UnwrappedGroup(const void* chain)
      : group_(
            const_cast<VkDeviceGroupDeviceCreateInfo*>(FindInChain<VkDeviceGroupDeviceCreateInfo>(
                chain, VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO))) {
    if (group_ == nullptr) return;
    wrapped_ = group_->pPhysicalDevices;
    for (uint32_t i = 0; i < group_->physicalDeviceCount; ++i) {
      real_.push_back(Unwrap(wrapped_[i]).real);
    }
    group_->pPhysicalDevices = real_.data();
  }
  ~UnwrappedGroup() {
    if (group_ != nullptr) group_->pPhysicalDevices = wrapped_;
  }
  UnwrappedGroup(const UnwrappedGroup&) = delete;
  UnwrappedGroup& operator=(const UnwrappedGroup&) = delete;

 private:
  VkDeviceGroupDeviceCreateInfo* const group_;
  const VkPhysicalDevice* wrapped_ = nullptr;
  std::vector<VkPhysicalDevice> real_;
};

bool Has(const std::vector<VkExtensionProperties>& extensions, absl::string_view name) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const VkExtensionProperties& e) { return name == e.extensionName; });
}

// Those to enable that the driver has: added ones stay here. The error: one that
// callers cannot see.
VkResult KeepReal(const PhysicalDevice& device, const VkDeviceCreateInfo& info,
                  std::vector<const char*>& kept) {
  std::vector<VkExtensionProperties> real;
  const VkResult result = RealExtensions(device, real);
  if (result != VK_SUCCESS) return result;
  const std::vector<VkExtensionProperties> shown = ShownExtensions(device, real);
  for (uint32_t i = 0; i < info.enabledExtensionCount; ++i) {
    const char* const name = info.ppEnabledExtensionNames[i];
    if (!Has(shown, name)) return VK_ERROR_EXTENSION_NOT_PRESENT;
    if (Has(real, name)) kept.push_back(name);
  }
  return VK_SUCCESS;
}

VkResult CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                      const VkAllocationCallbacks* allocator, VkDevice* handle) {
  const PhysicalDevice& device = Unwrap(physical);
  auto* const link =
      FindLink<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) return VK_ERROR_INITIALIZATION_FAILED;
  if (const auto broken = device.instance->faults->OnCall(Function::kCreateDevice, device.plan)) {
    return broken->result;
  }
  std::vector<const char*> extensions;
  VkResult result = KeepReal(device, *info, extensions);
  if (result != VK_SUCCESS) return result;
  VkDeviceCreateInfo real = *info;
  real.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  real.ppEnabledExtensionNames = extensions.data();
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo only_queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = 0,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
  if (!device.plan->queue_families.empty()) {
    real.queueCreateInfoCount = 1;
    real.pQueueCreateInfos = &only_queue;
  }
  const PFN_vkGetInstanceProcAddr next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create = reinterpret_cast<PFN_vkCreateDevice>(
      next_instance(device.instance->handle, "vkCreateDevice"));
  const UnwrappedGroup group(info->pNext);
  result = create(device.real, &real, allocator, handle);
  if (result != VK_SUCCESS) return result;
  AddDevice(std::make_unique<Device>(*handle, device, DeviceDispatch::Load(*handle, next_device),
                                     ShownMemory(device)));
  return VK_SUCCESS;
}

void DestroyDevice(VkDevice handle, const VkAllocationCallbacks* allocator) {
  if (handle == VK_NULL_HANDLE) return;
  DeviceOf(handle).OnCall(Function::kDestroyDevice);
  const std::unique_ptr<Device> device = TakeDevice(handle);
  device->End();
  device->next().DestroyDevice(handle, allocator);
}

}  // namespace

absl::Span<const EntryPoint> InstanceCalls() {
  static const EntryPoint kCalls[] = {
      HB_ENTRY(CreateInstance),
      HB_ENTRY(DestroyInstance),
      HB_ENTRY(EnumeratePhysicalDevices),
      HB_PROMOTED_ENTRY(EnumeratePhysicalDeviceGroups),
      HB_ENTRY(CreateDevice),
  };
  return kCalls;
}

absl::Span<const EntryPoint> DeviceCalls() {
  static const EntryPoint kCalls[] = {HB_ENTRY(DestroyDevice)};
  return kCalls;
}

}  // namespace heapbroker::faults

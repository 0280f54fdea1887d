// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a Vulkan physical device says of itself, as plain values: read once, so
// that every choice is a pure function that needs no hardware to be tested.
#ifndef DAEMON_VULKAN_DEVICE_SNAPSHOT_H_
#define DAEMON_VULKAN_DEVICE_SNAPSHOT_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/device_info.h"
#include "daemon/vulkan/instance.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Where a device sits (VK_EXT_pci_bus_info).
struct PciAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;

  friend bool operator==(const PciAddress&, const PciAddress&) = default;
};

// The node that the driver opens to compute, /dev/dri/renderD*
// (VK_EXT_physical_device_drm).
struct DeviceNode {
  int64_t major = 0;
  int64_t minor = 0;

  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

struct DeviceSnapshot {
  // Valid as long as the instance; no choice looks at it.
  VkPhysicalDevice handle = VK_NULL_HANDLE;

  std::string name;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  // The smaller of the device's version and the instance's: what may be used.
  uint32_t api_version = 0;
  std::set<std::string> extensions;

  // VkPhysicalDeviceDriverProperties; empty on drivers older than these.
  std::optional<VkDriverId> driver_id;
  std::string driver_name;
  std::string driver_info;

  // Unset where the driver does not say. UUIDs alone do not tell devices apart:
  // lavapipe's is the same on every machine.
  std::optional<PciAddress> pci;
  std::optional<DeviceNode> render_node;

  // The rest is empty or zero on a device older than Vulkan 1.1, which is of no
  // use here and need not answer the questions.
  Uuid device_uuid{};
  Uuid driver_uuid{};
  std::vector<VkMemoryHeap> heaps;
  // VkPhysicalDeviceMemoryBudgetPropertiesEXT::heapBudget, one for each heap;
  // empty where the device does not have VK_EXT_memory_budget.
  std::vector<VkDeviceSize> heap_budgets;
  std::vector<VkMemoryType> memory_types;
  std::vector<VkQueueFamilyProperties> queue_families;
  uint32_t max_allocation_count = 0;
  Bytes max_allocation_size;
  std::optional<Bytes> max_buffer_size;  // Known since Vulkan 1.3 or VK_KHR_maintenance4.
  // For buffers of kExternalBufferUsage. Asked for dma-bufs only where the
  // extension is; that says little, since Mesa lists it always.
  VkExternalMemoryProperties opaque_fd_buffers{};
  VkExternalMemoryProperties dma_buf_buffers{};
  // VkPhysicalDeviceBufferDeviceAddressFeatures::bufferDeviceAddress.
  bool buffer_device_address = false;

  bool software() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  bool has_extension(const char* extension) const { return extensions.count(extension) != 0; }
  // Part of Vulkan since `version`, an extension before.
  bool has(uint32_t version, const char* extension) const {
    return api_version >= version || has_extension(extension);
  }
};

// Every physical device, in the loader's order. Empty where there is none.
//   FAILED_PRECONDITION  the drivers found no device and said so as an error;
//                        says what to check
//   others               as ResultToStatus
absl::StatusOr<std::vector<DeviceSnapshot>> ReadDevices(const VulkanInstance& instance);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_SNAPSHOT_H_

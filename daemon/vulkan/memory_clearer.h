// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Writes zeros over whole allocations.
#ifndef DAEMON_VULKAN_MEMORY_CLEARER_H_
#define DAEMON_VULKAN_MEMORY_CLEARER_H_

#include <vulkan/vulkan.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/block_class.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/exportable_memory.h"
#include "daemon/vulkan/external_buffer.h"
#include "heapbroker/units.h"

namespace heapbroker {

// How memory that the host can map is cleared; other memory is always cleared by
// the device.
enum class ClearPath {
  kMapping,   // By the processor.
  kTransfer,  // By the device, where mappings are slow: over a bus, uncached.
};

// A fill, by processor or device, and a release to the queue family of importers
// (VulkanDevice::importers_queue_family), so that an importer's acquire has its
// counterpart. Owns the command buffer and
// the fence for that; used by one thread at a time.
class MemoryClearer {
 public:
  // `device` must outlive the clearer. Errors as ResultToStatus.
  static absl::StatusOr<std::unique_ptr<MemoryClearer>> Create(const VulkanDevice& device,
                                                               ClearPath path);
  ~MemoryClearer();
  MemoryClearer(const MemoryClearer&) = delete;
  MemoryClearer& operator=(const MemoryClearer&) = delete;

  // All of `memory`, which must be at least kSmallestClear bytes long and neither
  // mapped nor in use. Blocks until it is done. Padding that a driver demands
  // beyond the largest buffer is cleared where it can be mapped; elsewhere nothing
  // can read it.
  // Errors as DriverStatus; then the memory may hold anything.
  absl::Status Clear(const ExportableMemory& memory);

  // The device fills whole 32-bit words.
  static constexpr Bytes kSmallestClear = Bytes(4);

 private:
  explicit MemoryClearer(const VulkanDevice& device, ClearPath path)
      : device_(device), path_(path) {}

  absl::Status Clear(const ExportableMemory& memory, const ExternalBuffer& buffer);
  absl::Status ClearMapped(const ExportableMemory& memory, bool coherent);
  void RecordFill(const ExternalBuffer& buffer);
  void RecordRelease(const ExternalBuffer& buffer, HandleType handle_type);
  absl::Status SubmitAndWait();

  const VulkanDevice& device_;
  const ClearPath path_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // The pool's only one.
  VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_MEMORY_CLEARER_H_

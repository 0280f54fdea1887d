// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Device memory that can leave the process.
#ifndef DAEMON_VULKAN_EXPORTABLE_MEMORY_H_
#define DAEMON_VULKAN_EXPORTABLE_MEMORY_H_

#include <vulkan/vulkan.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/block_class.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/external_buffer.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Owns a VkDeviceMemory that was allocated for one handle type, and the buffer that
// it is dedicated to, if it is, which lives as long and is bound to it.
//
// Move-only; must go before the device does. Not thread-safe.
class ExportableMemory {
 public:
  // `block_class` must be one that `device` claims to have, and `size` one that it
  // allows.
  //   INVALID_ARGUMENT  dedicated, and no buffer needs exactly `size` bytes, as
  //                     Vulkan demands: ask DeviceMemory::RequiredSize
  //   others            as DriverStatus
  static absl::StatusOr<ExportableMemory> Allocate(const VulkanDevice& device,
                                                   const BlockClass& block_class, Bytes size);

  ExportableMemory(ExportableMemory&& other) noexcept;
  ExportableMemory& operator=(ExportableMemory&& other) noexcept;
  ~ExportableMemory();

  VkDeviceMemory handle() const { return handle_; }
  const BlockClass& block_class() const { return block_class_; }
  Bytes size() const { return size_; }
  // Null unless dedicated: then the only buffer that may be bound to the memory.
  const ExternalBuffer* dedicated_buffer() const {
    return dedicated_buffer_ ? &*dedicated_buffer_ : nullptr;
  }

  // Every call makes another descriptor; it has close-on-exec. Errors as
  // DriverStatus; RESOURCE_EXHAUSTED also where a driver hands out none and claims
  // success.
  absl::StatusOr<UniqueFd> Export() const;

 private:
  ExportableMemory(const VulkanDevice& device, const BlockClass& block_class, Bytes size)
      : device_(&device), block_class_(block_class), size_(size) {}

  absl::Status AllocateMemory();

  const VulkanDevice* device_;
  BlockClass block_class_;
  Bytes size_;
  VkDeviceMemory handle_ = VK_NULL_HANDLE;
  std::optional<ExternalBuffer> dedicated_buffer_;
};

// What buffers over blocks of `block_class` must be.
inline ExternalBufferKind BufferKindOf(const BlockClass& block_class) {
  return {block_class.handle_type, block_class.device_address};
}

// Allocates, exports and frees a small block of each kind that `info` claims for
// the device, and takes out of it what fails. Returns what there is to say in the
// log. See DropWhatFailed.
std::vector<std::string> TryExports(const VulkanDevice& device, DeviceInfo& info);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_EXPORTABLE_MEMORY_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Buffers as clients make them over brokered memory.
#ifndef DAEMON_VULKAN_EXTERNAL_BUFFER_H_
#define DAEMON_VULKAN_EXTERNAL_BUFFER_H_

#include <vulkan/vulkan.h>

#include "absl/status/statusor.h"
#include "daemon/core/block_class.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Drivers answer sizes, memory types and export support for a usage, so every
// question about external buffers is asked for this one: all that compute work
// needs without an extra device feature.
inline constexpr VkBufferUsageFlags kExternalBufferUsage =
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
    VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;

// What of a block its buffers must know.
struct ExternalBufferKind {
  HandleType handle_type = HandleType::kOpaqueFd;
  // Also of VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT; the device must have the
  // feature.
  bool device_address = false;
};

// Owns a VkBuffer of kExternalBufferUsage for one handle type, without memory of
// its own. Move-only; must go before the device does. Not thread-safe.
class ExternalBuffer {
 public:
  // `size` must not be zero and at most the device's largest buffer; the caller
  // has checked, since drivers do not. Errors as ResultToStatus.
  static absl::StatusOr<ExternalBuffer> Create(VkDevice device, ExternalBufferKind kind,
                                               Bytes size);
  // The largest that can be bound to an allocation of `allocation_size` bytes.
  // Importers of dedicated memory make the same search for the same buffer.
  //   RESOURCE_EXHAUSTED  there is none
  static absl::StatusOr<ExternalBuffer> CreateCovering(VkDevice device, ExternalBufferKind kind,
                                                       Bytes allocation_size);

  ExternalBuffer(ExternalBuffer&& other) noexcept;
  ExternalBuffer& operator=(ExternalBuffer&& other) noexcept;
  ~ExternalBuffer();

  VkBuffer handle() const { return handle_; }
  Bytes size() const { return size_; }
  // What memory must be and have to be bound to it.
  const VkMemoryRequirements& requirements() const { return requirements_; }

 private:
  ExternalBuffer(VkDevice device, VkBuffer handle, Bytes size);

  VkDevice device_ = VK_NULL_HANDLE;
  VkBuffer handle_ = VK_NULL_HANDLE;
  Bytes size_;
  VkMemoryRequirements requirements_{};
};

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_EXTERNAL_BUFFER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Buffers over a block's memory, before there is memory.
#ifndef CLIENT_SRC_IMPORT_BUFFER_H_
#define CLIENT_SRC_IMPORT_BUFFER_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "client/transport/process_mark.h"
#include "heapbroker/types.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

VkExternalMemoryHandleTypeFlagBits ToVulkan(HandleType type);

// Owns a VkBuffer that external memory can be bound to. Move-only; must go before
// the device does. A forked child leaves it alone.
class ImportBuffer {
 public:
  // Errors as VulkanStatus.
  static absl::StatusOr<ImportBuffer> Create(VkDevice device, HandleType type, Bytes size,
                                             VkBufferUsageFlags usage);
  // Of dedicated memory: the buffer that the daemon dedicated it to, made once more.
  // Of kDedicatedBufferUsage, also for device addresses if the facts say so.
  //   FAILED_PRECONDITION  there is none here that needs exactly the block's size
  static absl::StatusOr<ImportBuffer> CreateDedicated(VkDevice device, const ImportFacts& facts);

  ImportBuffer(ImportBuffer&& other) noexcept;
  ImportBuffer& operator=(ImportBuffer&& other) noexcept;
  ~ImportBuffer();

  VkBuffer handle() const { return handle_; }
  const VkMemoryRequirements& requirements() const { return requirements_; }

  // Of the first byte. The buffer must be bound, and made for this; the device must
  // have the feature. Empty where the driver has no such call all the same.
  std::optional<uint64_t> DeviceAddress() const;

 private:
  ImportBuffer(VkDevice device, VkBuffer handle);

  ProcessMark process_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VkMemoryRequirements requirements_{};
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_IMPORT_BUFFER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What makes two blocks interchangeable for the device.
#ifndef DAEMON_CORE_BLOCK_CLASS_H_
#define DAEMON_CORE_BLOCK_CLASS_H_

#include <compare>
#include <cstdint>

namespace heapbroker {

// How memory leaves the process. An allocation is made for one of them: for both
// together drivers succeed and then export the wrong kind (measured).
enum class HandleType : uint8_t { kOpaqueFd, kDmaBuf };

// The handle types that something can be exported as.
struct HandleTypes {
  bool opaque_fd = false;
  bool dma_buf = false;

  bool any() const { return opaque_fd || dma_buf; }
  bool has(HandleType type) const { return type == HandleType::kOpaqueFd ? opaque_fd : dma_buf; }
  friend bool operator==(const HandleTypes&, const HandleTypes&) = default;
};

struct BlockClass {
  uint32_t memory_type = 0;
  HandleType handle_type = HandleType::kOpaqueFd;
  // Allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT.
  bool device_address = false;
  // Allocated for one buffer that covers it (VkMemoryDedicatedAllocateInfo); whoever
  // imports it must do the same.
  bool dedicated = false;

  friend auto operator<=>(const BlockClass&, const BlockClass&) = default;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_BLOCK_CLASS_H_

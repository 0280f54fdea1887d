// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Pieces of imported buffers.
#ifndef CLIENT_SRC_BUFFER_RANGES_H_
#define CLIENT_SRC_BUFFER_RANGES_H_

#include <cstdint>

#include "client/src/arena.h"
#include "heapbroker/buffer_range.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

inline BufferRange WholeOf(const DeviceBuffer& buffer) {
  return BufferRange(buffer, Bytes(0), buffer.size());
}

// Where it begins for those who care how addresses are aligned: for the host where it
// sees the memory, else for the device where it has an address, else in the buffer.
uint64_t AddressOf(const BufferRange& range);

// What kernels and copies do with the memory of a model, and device addresses where
// both the block and the device have them.
VkBufferUsageFlags ArenaUsage(const ImportFacts& facts, const VulkanContext& context);

// Cuts `range`, whose alignment counts from its address: see ArenaAllocator::Allocate.
Arena ArenaOver(const BufferRange& range);

}  // namespace heapbroker
#endif  // CLIENT_SRC_BUFFER_RANGES_H_

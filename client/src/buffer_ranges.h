// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Pieces of imported buffers.
#ifndef CLIENT_SRC_BUFFER_RANGES_H_
#define CLIENT_SRC_BUFFER_RANGES_H_

#include "heapbroker/memory_manager.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// The range must lie in the buffer.
inline BufferRange RangeOf(const DeviceBuffer& buffer, Bytes offset, Bytes size) {
  void* const mapped = buffer.mapped();
  return {.buffer = &buffer,
          .offset = offset,
          .size = size,
          .host = mapped == nullptr ? nullptr : static_cast<char*>(mapped) + offset.count()};
}

}  // namespace heapbroker
#endif  // CLIENT_SRC_BUFFER_RANGES_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The allocators that lie in leased blocks.
#ifndef CLIENT_SRC_BLOCK_ALLOCATORS_H_
#define CLIENT_SRC_BLOCK_ALLOCATORS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/arena.h"
#include "heapbroker/memory_manager.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// One buffer for each memory id. Immutable.
class PlannedAllocator final : public HierarchicalAllocator {
 public:
  explicit PlannedAllocator(std::vector<DeviceBuffer> buffers) : buffers_(std::move(buffers)) {}

  size_t memory_count() const override { return buffers_.size(); }
  absl::StatusOr<BufferRange> Get(uint32_t memory_id, Bytes offset, Bytes size) const override;

 private:
  const std::vector<DeviceBuffer> buffers_;
};

// An Arena over a buffer; over an empty one there is room for nothing.
class BufferArena final : public ArenaAllocator {
 public:
  explicit BufferArena(DeviceBuffer buffer) : buffer_(std::move(buffer)), arena_(buffer_.size()) {}

  absl::StatusOr<BufferRange> Allocate(Bytes size, Bytes alignment) override;
  void Reset() override { arena_.Reset(); }
  Bytes size() const override { return arena_.capacity(); }
  Bytes used() const override { return arena_.used(); }
  Bytes peak() const override { return arena_.peak(); }

 private:
  const DeviceBuffer buffer_;
  Arena arena_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_BLOCK_ALLOCATORS_H_

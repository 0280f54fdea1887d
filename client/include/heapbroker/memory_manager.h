// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The memory of one model in one process: the four allocators that an executor
// needs, over brokered memory.
#ifndef HEAPBROKER_MEMORY_MANAGER_H_
#define HEAPBROKER_MEMORY_MANAGER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heapbroker/client.h"
#include "heapbroker/export.h"
#include "heapbroker/types.h"

namespace heapbroker {

class DeviceBuffer;
class VulkanImporter;

// Everything that a model needs, known before it runs.
struct MemoryPlan {
  // Weights: a segment that the tenant's processes share. Size zero: none.
  std::string constant_name{};
  Bytes constant_size{};
  MemoryKind constant_kind = MemoryKind::kDeviceLocal;
  absl::Duration constant_timeout = absl::InfiniteDuration();  // SegmentOptions::timeout.

  // Planned buffers (activations): the memory id is the position.
  std::vector<Bytes> non_constant_sizes{};
  MemoryKind non_constant_kind = MemoryKind::kDeviceLocal;

  // Size zero: an arena that has room for nothing.
  Bytes runtime_size{};
  MemoryKind runtime_kind = MemoryKind::kHostVisible;
  Bytes kernel_temporary_size{};
  MemoryKind kernel_temporary_kind = MemoryKind::kDeviceLocal;
};

// A piece of a DeviceBuffer, borrowed from the MemoryManager.
struct BufferRange {
  const DeviceBuffer* buffer = nullptr;  // Null only for an allocator without memory.
  Bytes offset{};                        // In the buffer.
  Bytes size{};
  // `size` bytes in host memory; null where the memory is not host-visible, which
  // DEVICE_LOCAL memory need not be.
  void* host = nullptr;
};

// Weights in a segment. Not thread-safe.
class HEAPBROKER_EXPORT ConstantAllocator {
 public:
  virtual ~ConstantAllocator() = default;

  virtual Bytes size() const = 0;

  // This process must Write everything and then Seal.
  virtual bool must_fill() const = 0;

  // Offsets at which the segment's blocks begin: {0} unless it is larger than
  // the device's largest block. No range crosses one of them.
  virtual const std::vector<Bytes>& block_starts() const = 0;

  // Bytes [offset, offset + size) of the segment. Empty ranges are fine
  // everywhere, the end included.
  //   OUT_OF_RANGE         past the end
  //   INVALID_ARGUMENT     offset + size passes 2^64 - 1, or crosses a block's start
  virtual absl::StatusOr<BufferRange> Get(Bytes offset, Bytes size) const = 0;

  // Copies host memory into the segment, through a staging block where the host
  // cannot map it; may cross blocks.
  //   OUT_OF_RANGE         past the end
  //   FAILED_PRECONDITION  not to be filled by this process, or sealed
  virtual absl::Status Write(Bytes offset, const void* data, Bytes size) = 0;

  // Says that all is written: computes the checksum and seals the segment. Work
  // on the device that writes it must have completed. Uses the queue.
  //   FAILED_PRECONDITION  not to be filled by this process, or sealed
  virtual absl::Status Seal() = 0;

  // What the contents are supposed to be; zeros until sealed.
  virtual Checksum checksum() const = 0;

  // Reads everything and compares it with checksum(). Uses the queue.
  //   DATA_LOSS            somebody wrote into the sealed segment, or it was sealed wrongly
  //   FAILED_PRECONDITION  not sealed yet
  virtual absl::Status Verify() = 0;
};

// Planned buffers by memory id. Thread-safe: it never changes.
class HEAPBROKER_EXPORT HierarchicalAllocator {
 public:
  virtual ~HierarchicalAllocator() = default;

  virtual size_t memory_count() const = 0;

  // `size` bytes from `offset` of the buffer `memory_id`; an empty range at the
  // exact end is fine.
  //   INVALID_ARGUMENT     no such memory id, or offset + size passes 2^64 - 1
  //   OUT_OF_RANGE         past the end of that buffer
  virtual absl::StatusOr<BufferRange> Get(uint32_t memory_id, Bytes offset, Bytes size) const = 0;
};

// Cuts one block from front to back. Not thread-safe.
class HEAPBROKER_EXPORT ArenaAllocator {
 public:
  virtual ~ArenaAllocator() = default;

  // `alignment` is a power of two and counts from the start of the buffer, which
  // itself is aligned to kMaxBlockAlignment. An empty request succeeds and takes
  // nothing. A refused request changes nothing.
  //   INVALID_ARGUMENT     alignment is not a power of two
  //   RESOURCE_EXHAUSTED   does not fit; the message says what is left
  virtual absl::StatusOr<BufferRange> Allocate(Bytes size, Bytes alignment) = 0;

  // Everything that was handed out is free again; its users must be done.
  virtual void Reset() = 0;

  virtual Bytes size() const = 0;
  virtual Bytes used() const = 0;  // Padding included.
  virtual Bytes peak() const = 0;  // Largest used() ever; Reset keeps it.
};

// Leases everything but the segment in one call, all or nothing, opens the
// segment, imports it all and acquires it for the importer's queue family.
// Destruction releases it to VK_QUEUE_FAMILY_EXTERNAL and gives it back; the
// device must be done with it, and the queue must be free.
//
// All buffers can be storage, uniform, transfer source and transfer target.
//
// Not thread-safe. `importer` must outlive it; the client need not.
class HEAPBROKER_EXPORT MemoryManager {
 public:
  // Errors are those of Client::AllocateAll and OpenSegment and of
  // VulkanImporter::Import; INVALID_ARGUMENT for a plan that contradicts itself.
  static absl::StatusOr<std::unique_ptr<MemoryManager>> Create(const Client& client,
                                                               VulkanImporter& importer,
                                                               const MemoryPlan& plan);
  ~MemoryManager();
  MemoryManager(const MemoryManager&) = delete;
  MemoryManager& operator=(const MemoryManager&) = delete;

  // Never null; owned by the manager.
  ConstantAllocator* get_constant_allocator() const;
  HierarchicalAllocator* get_non_constant_allocator() const;
  ArenaAllocator* get_runtime_allocator() const;
  ArenaAllocator* get_kernel_temporary_allocator() const;

 private:
  struct HEAPBROKER_LOCAL State;
  explicit MemoryManager(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_MEMORY_MANAGER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Brokered memory for the standard library's containers.
#ifndef HEAPBROKER_HOST_MEMORY_RESOURCE_H_
#define HEAPBROKER_HOST_MEMORY_RESOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>

#include "heapbroker/device_allocator.h"
#include "heapbroker/export.h"

namespace heapbroker {

struct HostMemoryResourceStats {
  uint64_t allocations = 0;    // Of the allocator, alive now.
  uint64_t upstream = 0;       // Of the upstream resource, alive now.
  uint64_t unknown_frees = 0;  // Pointers that were not, or no longer, allocated here.
};

// Memory of a DeviceAllocator that the host can see. The device sees what is in it,
// too: RangeOf says where.
//
// What the allocator refuses, and memory that the host turns out not to see, the
// upstream resource serves; the usual one throws std::bad_alloc, as memory resources
// have to. Pointers that were not allocated here are counted and otherwise ignored.
// All bookkeeping lies outside the memory.
//
// In a forked child allocating throws std::bad_alloc, deallocating does nothing, and
// nothing has a range; it may be dropped.
//
// Thread-safe, if the upstream resource is.
class HEAPBROKER_EXPORT HostMemoryResource final : public std::pmr::memory_resource {
 public:
  // Both must outlive it. Make the allocator for MemoryKind::kHostVisible.
  explicit HostMemoryResource(DeviceAllocator& allocator, std::pmr::memory_resource* upstream =
                                                              std::pmr::null_memory_resource());
  // Frees what was not deallocated.
  ~HostMemoryResource() override;
  HostMemoryResource(const HostMemoryResource&) = delete;
  HostMemoryResource& operator=(const HostMemoryResource&) = delete;

  // Of a pointer that allocate returned; of no buffer for any other, and where it is
  // the upstream resource's.
  BufferRange RangeOf(const void* pointer) const;

  HostMemoryResourceStats stats() const;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* pointer, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override;

  class HEAPBROKER_LOCAL State;
  std::unique_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_HOST_MEMORY_RESOURCE_H_

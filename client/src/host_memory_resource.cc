// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/host_memory_resource.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "client/transport/process_mark.h"
#include "common/base/mutex.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

// Empty where the allocator has none, or the host cannot see it.
std::optional<DeviceAllocation> AllocateVisible(DeviceAllocator& allocator, Bytes size,
                                                Bytes alignment) {
  const absl::StatusOr<DeviceAllocation> allocation = allocator.Allocate(size, alignment);
  if (!allocation.ok()) return std::nullopt;
  if (allocation->range.host_visible()) return *allocation;
  allocator.Free(allocation->handle).IgnoreError();
  return std::nullopt;
}

}  // namespace

class HostMemoryResource::State {
 public:
  // Of no buffer: the upstream resource's.
  using Allocations = std::unordered_map<const void*, DeviceAllocation>;

  State(DeviceAllocator& device_allocator, std::pmr::memory_resource* upstream_resource)
      : allocator(device_allocator), upstream(upstream_resource) {}

  void Add(const void* pointer, const DeviceAllocation& allocation) {
    MutexLock lock(mutex);
    ++(allocation.range.buffer().valid() ? counts.allocations : counts.upstream);
    allocations[pointer] = allocation;
  }
  std::optional<DeviceAllocation> Remove(const void* pointer) {
    MutexLock lock(mutex);
    const auto found = allocations.find(pointer);
    if (found == allocations.end()) {
      ++counts.unknown_frees;
      return std::nullopt;
    }
    const DeviceAllocation allocation = found->second;
    --(allocation.range.buffer().valid() ? counts.allocations : counts.upstream);
    allocations.erase(found);
    return allocation;
  }

  DeviceAllocator& allocator;
  std::pmr::memory_resource* const upstream;
  const ProcessMark process;
  mutable Mutex mutex;
  Allocations allocations ABSL_GUARDED_BY(mutex);
  HostMemoryResourceStats counts ABSL_GUARDED_BY(mutex);
};

HostMemoryResource::HostMemoryResource(DeviceAllocator& allocator,
                                       std::pmr::memory_resource* upstream)
    : state_(std::make_unique<State>(allocator, upstream)) {}

HostMemoryResource::~HostMemoryResource() {
  if (state_->process.forked()) {
    // What is allocated is the parent's, and another thread's lock would never be free.
    static_cast<void>(state_.release());
    return;
  }
  State::Allocations left;
  {
    MutexLock lock(state_->mutex);
    left = std::move(state_->allocations);
  }
  // The allocator has locks of its own.
  for (const auto& [pointer, allocation] : left) {
    // How much the upstream resource gave is not known here, so it cannot have it back.
    if (allocation.range.buffer().valid()) state_->allocator.Free(allocation.handle).IgnoreError();
  }
}

void* HostMemoryResource::do_allocate(size_t bytes, size_t alignment) {
  if (state_->process.forked()) {
    return std::pmr::null_memory_resource()->allocate(bytes, alignment);
  }
  if (const auto allocation = AllocateVisible(state_->allocator, Bytes(bytes), Bytes(alignment))) {
    void* const pointer = *allocation->range.host();
    state_->Add(pointer, *allocation);
    return pointer;
  }
  void* const pointer = state_->upstream->allocate(bytes, alignment);
  state_->Add(pointer, DeviceAllocation{});
  return pointer;
}

void HostMemoryResource::do_deallocate(void* pointer, size_t bytes, size_t alignment) {
  if (state_->process.forked()) return;
  const std::optional<DeviceAllocation> allocation = state_->Remove(pointer);
  if (!allocation) return;
  if (allocation->range.buffer().valid()) {
    state_->allocator.Free(allocation->handle).IgnoreError();
  } else {
    state_->upstream->deallocate(pointer, bytes, alignment);
  }
}

bool HostMemoryResource::do_is_equal(const memory_resource& other) const noexcept {
  return this == &other;
}

BufferRange HostMemoryResource::RangeOf(const void* pointer) const {
  if (state_->process.forked()) return BufferRange();
  MutexLock lock(state_->mutex);
  const auto found = state_->allocations.find(pointer);
  return found == state_->allocations.end() ? BufferRange() : found->second.range;
}

HostMemoryResourceStats HostMemoryResource::stats() const {
  if (state_->process.forked()) return HostMemoryResourceStats();
  MutexLock lock(state_->mutex);
  return state_->counts;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The memory of one model in one process: the four allocators that an executor
// needs, over brokered memory.
#ifndef HEAPBROKER_MEMORY_MANAGER_H_
#define HEAPBROKER_MEMORY_MANAGER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "heapbroker/allocators.h"
#include "heapbroker/client.h"
#include "heapbroker/export.h"
#include "heapbroker/memory_plan.h"

namespace heapbroker {

class VulkanImporter;

// Leases everything but the segment in one call, all or nothing, opens the
// segment, imports it all and acquires it for the importer's queue family.
// Destruction releases it to VK_QUEUE_FAMILY_EXTERNAL and gives it back; the
// device must be done with it, and the queue must be free.
//
// All buffers can be storage, uniform, transfer source and transfer target, and
// what was planned with device addresses has them.
//
// Not thread-safe. `importer` must outlive it; the client need not. A forked child may
// drop it, which does nothing; what makes calls or uses the queue is FAILED_PRECONDITION.
class HEAPBROKER_EXPORT MemoryManager {
 public:
  // The segment comes first, since it may have to be waited for: whoever waits
  // holds nothing that others could need. If anything fails after it, it is closed
  // again and every lease given back, as by Segment::CloseLater and Lease::ReleaseLater:
  // nothing of the plan is kept. Where this process was to fill the segment, that falls
  // to the next one that opens it.
  //
  // Errors are those of Client::OpenSegment and AllocateAll and of
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

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A Vulkan device's memory, made and unmade for the core.
#ifndef DAEMON_VULKAN_VULKAN_MEMORY_H_
#define DAEMON_VULKAN_VULKAN_MEMORY_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "daemon/core/device_memory.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/exportable_memory.h"
#include "daemon/vulkan/memory_clearer.h"

namespace heapbroker {

// Whether Allocate clears. Fresh memory is not promised to be zero, and may hold
// what another process left.
enum class ClearMode {
  kAuto,    // Unless the driver is known to give zeros.
  kAlways,  // There too.
};

struct VulkanMemoryOptions {
  ClearMode clear_mode = ClearMode::kAuto;
  ClearPath clear_path = ClearPath::kMapping;
};

// DeviceMemory over vkAllocateMemory.
//
// What comes in is checked before the driver sees it: drivers accept sizes and
// types that the specification forbids, and then misbehave. A block class that
// the device does not have is INVALID_ARGUMENT from every method.
//
// Threads as DeviceMemory says: one allocates, clears and asks for sizes, one
// frees. They share only the table of what is alive, under a mutex that is never
// held over a device call.
class VulkanMemory final : public DeviceMemory {
 public:
  // `device` must outlive the memory. Errors as MemoryClearer::Create.
  static absl::StatusOr<std::unique_ptr<VulkanMemory>> Create(const VulkanDevice& device,
                                                              const VulkanMemoryOptions& options);
  // Frees what is still alive.
  ~VulkanMemory() override;

  const DeviceInfo& info() const override { return device_.info(); }

  // At least MemoryClearer::kSmallestClear. INVALID_ARGUMENT also where a buffer for
  // such blocks cannot lie in the memory type.
  absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) override;

  // RESOURCE_EXHAUSTED also for sizes below MemoryClearer::kSmallestClear, above
  // info().max_allocation_size, or above the heap as the driver reports it. Other
  // errors as ExportableMemory and MemoryClearer.
  absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class, Bytes allocation_size) override;

  // NOT_FOUND if the allocation is not alive.
  absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) override;

  // As VK_EXT_memory_budget has it, unchecked.
  std::vector<HeapReport> ReadHeaps() override;

  // An id that is not alive is ignored.
  void Free(DeviceAllocationId id) override;

 private:
  VulkanMemory(const VulkanDevice& device, const VulkanMemoryOptions& options,
               std::unique_ptr<MemoryClearer> clearer);

  absl::Status CheckClass(const BlockClass& block_class) const;
  absl::Status CheckAllocationSize(BlockClass block_class, Bytes size) const;

  const VulkanDevice& device_;
  const bool clear_fresh_memory_;
  const std::unique_ptr<MemoryClearer> clearer_;  // The allocating thread's.
  Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<DeviceAllocationId, std::unique_ptr<ExportableMemory>> live_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_VULKAN_MEMORY_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The port to a device: the one way in which the core has memory made and
// unmade. Implemented by VulkanMemory and by SimulatedDevice; one contract suite
// (tests/contract) holds both to it.
#ifndef DAEMON_CORE_DEVICE_MEMORY_H_
#define DAEMON_CORE_DEVICE_MEMORY_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_info.h"
#include "heapbroker/units.h"

namespace heapbroker {

// A descriptor that the device exported, open for as long as anyone holds this.
// An edge that sends it keeps a reference while it does, so that freeing the
// block meanwhile cannot make it send another file.
class ExportedHandle {
 public:
  virtual ~ExportedHandle() = default;
  // Borrowed; has close-on-exec. -1 on a device that has no descriptors.
  virtual int fd() const = 0;
};

// What the device made.
struct DeviceAllocation {
  DeviceAllocationId id;
  Bytes allocation_size;  // Exactly what was asked for.
  std::shared_ptr<const ExportedHandle> exported;
};

// What the driver says of a heap now (VK_EXT_memory_budget), as it says it: a
// budget over the heap's size, a usage over the budget and zeros have been seen.
struct HeapReport {
  Bytes budget;  // What this process may have in all, as an estimate.
  Bytes usage;   // What this process has.
};

// Every call may block for as long as the driver likes, so none is made with a
// lock held or on a thread that anyone waits for: the core calls these only from
// a DeviceExecutor's jobs. Allocate and Clear come from one thread, Free from
// another; RequiredSize from the first.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  virtual const DeviceInfo& info() const = 0;

  // What an allocation must have so that an external buffer of `size` bytes can
  // be bound to it: VkMemoryRequirements.size. At least `size`.
  //   OUT_OF_RANGE        no such buffer, or no allocation for it, can be made, whatever
  //                       is free; says why
  //   RESOURCE_EXHAUSTED  the driver ran out of something
  virtual absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) = 0;

  // Allocates exportable memory, clears it where fresh memory is not known to be
  // zero, and exports it. All or nothing: an error leaves nothing allocated.
  //   OUT_OF_RANGE        as above
  //   RESOURCE_EXHAUSTED  the driver is out of device memory, or descriptors ran out
  //   UNAVAILABLE         the device is lost
  //   INTERNAL            anything else the driver said, by its name
  virtual absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class,
                                                    Bytes allocation_size) = 0;

  // Writes zeros over all of an allocation. No other work on it may be running.
  virtual absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) = 0;

  // One report for each heap; empty where the driver does not say. From the
  // allocating thread.
  virtual std::vector<HeapReport> ReadHeaps() = 0;

  // Frees. Holders of imports keep the memory alive; that is theirs to end.
  virtual void Free(DeviceAllocationId id) = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_MEMORY_H_

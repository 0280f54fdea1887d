// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Memory for engines that allocate buffers as they go.
#ifndef HEAPBROKER_DEVICE_ALLOCATOR_H_
#define HEAPBROKER_DEVICE_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "heapbroker/buffer_range.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/local_cache.h"
#include "heapbroker/range_allocator.h"
#include "heapbroker/requests.h"

namespace heapbroker {

struct DeviceAllocatorOptions {
  // As in AllocationRequest.
  MemoryChoice memory = MemoryKind::kDeviceLocal;
  std::optional<HandleType> handle_type{};
  bool device_address = false;

  // Sizes and offsets are rounded up to it: a power of two from 4 to
  // kMaxBlockAlignment. No device asks for more than 256 where shaders access buffers.
  // On a device that has memory which the host sees, but not coherently, it is at least
  // nonCoherentAtomSize (256 at most), so that flushing one allocation leaves all others
  // alone.
  Bytes granularity = Bytes(256);

  // Blocks are leased in steps: the first is `smallest_block`, each further one as large
  // as all before it together, rounded down to a power of two, up to `largest_block`. A
  // request that is larger than its step gets a block of its own size.
  Bytes smallest_block = MiB(4);
  Bytes largest_block = MiB(64);

  // Of the calls that lease blocks. How long they may wait is for the size that is
  // needed; larger steps never wait.
  uint32_t device_index = 0;
  Priority priority = Priority::kNormal;
  std::optional<absl::Duration> max_wait{};
};

// Names an allocation until it is freed, and nothing ever after.
struct DeviceAllocationHandle {
  RangeHandle range{};
  uint32_t block = 0;

  friend bool operator==(const DeviceAllocationHandle&, const DeviceAllocationHandle&) = default;
};

struct DeviceAllocation {
  // Good until it is freed. To bind a VkBuffer of one's own, take the memory() of its
  // buffer() and its offset().
  BufferRange range{};
  DeviceAllocationHandle handle{};
};

// Blocks by themselves and the ranges in them; allocated + free == leased. Sums over
// blocks that are looked at one by one: while others allocate, not of one moment.
struct DeviceAllocatorStats {
  Bytes leased{};       // Without what is idle in the cache.
  Bytes peak_leased{};  // Largest `leased` ever.
  Bytes allocated{};    // Rounding included.
  Bytes free{};
  Bytes largest_free{};  // That can still be cut.
  // Part of `leased`: blocks of sessions that were lost, out of which nothing more is
  // cut. No daemon accounts for them.
  Bytes lost{};
  uint64_t allocations = 0;
  uint32_t blocks = 0;
};

// Cuts leased blocks into ranges: see RangeAllocator, which it has one of for each
// block. Most requests take constant time and make no call. Where no block has room, it
// takes an idle one from the cache, or else asks the daemon: for a step (see the
// options), for half of it and so on while there is no room for that, and last for the
// size that is needed; before that may wait or fail, the cache gives its idle blocks
// back. A block that is wholly free goes to the cache.
//
// Thread-safe: each block has its own lock, and threads that allocate at the same time
// use different blocks as far as there are several. One thread leases at a time; others
// that need a new block wait for it. Contents are undefined unless zeros are asked for.
//
// After the loss of the session what is allocated stays valid until it is freed, and
// nothing more is cut out of those blocks: the next allocation is of the next session,
// or UNAVAILABLE while there is none. In a forked child, which shares the memory with its
// parent, but not the bookkeeping, every call is FAILED_PRECONDITION; it may be dropped.
class HEAPBROKER_EXPORT DeviceAllocator {
 public:
  enum class Contents {
    kUndefined,
    // Written by the host where it can, else by the device, through the context's
    // queue: nothing else may use that at this time.
    kZeros,
  };

  //   INVALID_ARGUMENT  an option is out of range, or there is no cache; the message says
  //                     which
  static absl::StatusOr<std::unique_ptr<DeviceAllocator>> Create(
      std::shared_ptr<LocalCache> cache, const DeviceAllocatorOptions& options = {});
  // Gives all blocks back, also those with allocations: nobody may use them any more.
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  // `alignment` is a power of two, and it is the address that is aligned: the host's
  // where the memory is host-visible, else the device's where it has device addresses,
  // else the offset in the block. An empty request is served as one of a byte, so that
  // every allocation has a place of its own.
  //   INVALID_ARGUMENT    alignment is not a power of two
  //   RESOURCE_EXHAUSTED  no memory; RefusalOf says by which limit
  //   DEADLINE_EXCEEDED, CANCELLED  as `call` says, which only matters where a block has
  //                       to be leased
  //   or an error of Client::Allocate or VulkanImporter::Import
  absl::StatusOr<DeviceAllocation> Allocate(Bytes size, Bytes alignment = Bytes(1),
                                            Contents contents = Contents::kUndefined,
                                            const CallOptions& call = {});

  // The device and the host must be done with it. Makes no call.
  //   NOT_FOUND           no such allocation here: it was freed before, or it is
  //                       another allocator's. Nothing has changed.
  absl::Status Free(DeviceAllocationHandle handle);

  // Zeros in a forked child.
  DeviceAllocatorStats stats() const;

 private:
  class HEAPBROKER_LOCAL State;
  explicit DeviceAllocator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_DEVICE_ALLOCATOR_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Why there was no memory, for programs; a status' message says it to people.
#ifndef HEAPBROKER_MEMORY_REFUSAL_H_
#define HEAPBROKER_MEMORY_REFUSAL_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "heapbroker/export.h"

namespace heapbroker {

// Figures are bytes or counts, as the limit has it.
struct MemoryRefusal {
  enum class Limit {
    kUnknown,             // One that this library does not know: the daemon is newer.
    kHeapBudget,          // Bytes of a heap: what the daemon gives out of it.
    kMaxAllocationSize,   // Bytes of one allocation.
    kMaxAllocationCount,  // Allocations of the device (maxMemoryAllocationCount).
    kDescriptors,         // Blocks that the daemon has descriptors for (RLIMIT_NOFILE).
    kMemoryMaps,          // Blocks that the daemon has mappings for (vm.max_map_count).
    kDriver,              // Bytes: the driver had less than the heap's budget.
    kWaitingCalls,        // Calls of this session that wait.
    kWaitingBlocks,       // Blocks that requests of this user wait for.
  };

  // Not even if everything else were given back: asking again is of no use. Else
  // there is none now.
  bool never_fits = false;
  Limit limit = Limit::kUnknown;
  uint32_t device_index = 0;           // Into Client::devices().
  std::optional<uint32_t> heap_index;  // Into its heaps; of kHeapBudget and kDriver.
  uint64_t value = 0;                  // The limit itself.
  uint64_t in_use = 0;                 // What of it cannot be had now.
  uint64_t requested = 0;
  // Bytes or counts that would fit now in one request, and all that is free or
  // idle, in one piece or not. Others may take it before the next call.
  uint64_t largest_now = 0;
  uint64_t free = 0;

  friend bool operator==(const MemoryRefusal&, const MemoryRefusal&) = default;
};

// Of the RESOURCE_EXHAUSTED that Allocate, AllocateAll or OpenSegment ended with.
// Unset for any other status, and where the daemon said nothing that this library
// can read. Does not depend on the connection. Thread-safe.
HEAPBROKER_EXPORT std::optional<MemoryRefusal> RefusalOf(const absl::Status& status);

}  // namespace heapbroker
#endif  // HEAPBROKER_MEMORY_REFUSAL_H_

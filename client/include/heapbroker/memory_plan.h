// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Everything that a model needs, known before it runs: plain values.
#ifndef HEAPBROKER_MEMORY_PLAN_H_
#define HEAPBROKER_MEMORY_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "heapbroker/requests.h"
#include "heapbroker/types.h"

namespace heapbroker {

// Weights: a segment that the tenant's processes share.
struct ConstantPlan {
  std::string name{};  // The segment's. Empty: there are no constants.
  Bytes size{};        // Zero if, and only if, there is no name.
  MemoryChoice memory = MemoryKind::kDeviceLocal;
  // How long to wait for another process that fills it: SegmentOptions::timeout.
  absl::Duration timeout = absl::InfiniteDuration();
};

// A range of memory that one allocator cuts.
struct ArenaPlan {
  Bytes size{};
  // Unset: host-visible for the runtime allocator, whose users are on the host, and
  // device-local for the others.
  std::optional<MemoryChoice> memory{};
  // For messages, and for HierarchicalAllocator::memory_id: unique among the planned
  // buffers, or empty.
  std::string name{};
  // Ranges have device addresses: see AllocationRequest::device_address.
  bool device_address = false;
  // Reads as zeros at first. Otherwise it may hold what this tenant left in it.
  bool zeroed = false;
};

// What an arena does with requests that its planned memory has no room for: it
// leases a further block. See ArenaAllocator::Reset for when that goes back.
struct OverflowPlan {
  // Size of a further block, unless the request needs a larger one, or only a
  // smaller one is to be had.
  Bytes step = MiB(16);
  // Of all further blocks together, at most.
  Bytes limit = Bytes::Max();
};

struct MemoryPlan {
  ConstantPlan constant{};

  // Planned buffers (activations): the memory id is the position. None may have
  // size zero.
  std::vector<ArenaPlan> non_constant{};

  // Size zero: an arena that has room for nothing.
  ArenaPlan runtime{};
  ArenaPlan kernel_temporary{};
  // Unset: what the planned memory has no room for is refused.
  std::optional<OverflowPlan> kernel_temporary_overflow{};

  // Of the call that leases all but the constants: device, priority, time. The
  // device and the cancellation are the segment's as well; priority, device and
  // time also those of further leases. The time is one for the lease and all imports,
  // and begins when the segment is there. `request_id` must be 0.
  AllocateOptions options{};
};

}  // namespace heapbroker
#endif  // HEAPBROKER_MEMORY_PLAN_H_

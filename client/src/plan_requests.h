// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a memory plan asks the daemon for.
#ifndef CLIENT_SRC_PLAN_REQUESTS_H_
#define CLIENT_SRC_PLAN_REQUESTS_H_

#include <vector>

#include "absl/status/status.h"
#include "heapbroker/memory_plan.h"
#include "heapbroker/requests.h"

namespace heapbroker {

// INVALID_ARGUMENT for a plan that contradicts itself; the message names the field.
absl::Status CheckPlan(const MemoryPlan& plan);

// Everything but the segment: the planned buffers in order, then the runtime arena
// and the kernel temporary one, if they have a size.
std::vector<AllocationRequest> LeasesOf(const MemoryPlan& plan);

// A further block of the kernel temporary arena, but for its size.
AllocationRequest FurtherLeaseOf(const MemoryPlan& plan);
// Of the calls that ask for those.
AllocateOptions FurtherOptionsOf(const MemoryPlan& plan);

// There must be a name.
SegmentOptions SegmentOf(const MemoryPlan& plan);

}  // namespace heapbroker
#endif  // CLIENT_SRC_PLAN_REQUESTS_H_

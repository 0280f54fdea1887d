// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Requests for memory, as admission sees them.
#ifndef DAEMON_CORE_ORDER_H_
#define DAEMON_CORE_ORDER_H_

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/effects.h"
#include "daemon/core/placement.h"
#include "daemon/core/requests.h"
#include "heapbroker/units.h"

namespace heapbroker {

// One block of an order.
struct Want {
  Bytes size;
  Bytes alignment;
  std::shared_ptr<const Placement> placement;
  bool device_address = false;
  bool dedicated = false;
  bool zeroed = false;
  bool fresh = false;  // Neither out of a pool nor back into one: segments.
  // What the device said that it needs for this, where the order was tried before and
  // that was not there.
  Bytes needs = {};

  // The smallest buffer that serves it, in whole alignments; and what must be there for
  // that.
  Bytes exact() const { return AlignUp(size, std::max(alignment, Bytes(1))).value_or(size); }
  Bytes least() const { return std::max(exact(), needs); }

  BlockClass ClassOn(uint32_t memory_type) const {
    return {memory_type, placement->handle_type, device_address, dedicated};
  }
};

// All the memory of one Allocate or of one segment.
struct Order {
  OrderId id;
  CallId call;
  SessionId session;
  TenantId tenant;
  std::optional<SegmentId> segment;  // Unset: leases.
  RequestId request;
  Priority priority = Priority::kNormal;
  // Until when it may wait for what others hold. Unset: not at all.
  std::optional<absl::Time> wait_until;
  absl::InlinedVector<Want, 2> wants;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ORDER_H_

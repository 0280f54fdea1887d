// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the device is to make, and what came of it.
#ifndef DAEMON_CORE_FILL_ORDER_H_
#define DAEMON_CORE_FILL_ORDER_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_memory.h"
#include "heapbroker/units.h"

namespace heapbroker {

// One request for memory on its way to the device; counted up from 1.
using OrderId = Id<struct OrderTag>;

// One allocation to make, or one idle block to clear.
struct FillItem {
  BlockClass block_class;
  Bytes planned;  // The buffer that it is for, rounded up so that the block can be reused.
  Bytes exact;    // What will do if `planned` is too much for the device.
  std::optional<DeviceAllocation> reuse;  // Set: clear this, allocate nothing.
};

// All or nothing.
struct FillOrder {
  OrderId id;
  std::vector<FillItem> items;
};

// What the device needs for a buffer.
struct BufferNeeds {
  Bytes size;
  Bytes allocation;  // At least `size`: drivers pad.
};

// What became of an order at the device.
struct Filled {
  std::vector<DeviceAllocation> made;  // One for each item up to the first that failed.
  absl::Status status;                 // Why that one did.
  // It was for want of memory that it did, so that evicting something may help: not
  // where no buffer of the size can be made, nor where a clear failed.
  bool out_of_memory = false;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_FILL_ORDER_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The unit that is cached, leased and shared.
#ifndef DAEMON_CORE_BLOCK_H_
#define DAEMON_CORE_BLOCK_H_

#include <cstddef>

#include "common/base/ids.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_memory.h"
#include "heapbroker/units.h"

namespace heapbroker {

// One allocation of the device, whoever has it at the moment. Moves between the
// pool, a lease, a segment and the free queue; exactly one of them has it.
struct Block {
  // Names this lease of the block, or the block in its segment; changes with
  // every lease, so that giving one back twice cannot take away a later one.
  BlockId id;
  // Whose contents it may hold. Never changes: an exported descriptor cannot be
  // called back, so the block can never go to anyone else.
  TenantId tenant;
  BlockClass block_class;
  // The pool that it came from and goes back to; never looked up again, so that
  // other pools, configured later, cannot unbalance the counters.
  size_t pool = 0;
  DeviceAllocation memory;
  // The buffer that it was made for, which it surely has room for, and which finds it
  // again when it is idle. What a driver pads that by is not counted on: only the driver
  // could tell whether a larger buffer can be bound there, and a hit does not ask it.
  Bytes made_for;

  // What every counter adds and subtracts for this block.
  Bytes bytes() const { return memory.allocation_size; }
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_BLOCK_H_

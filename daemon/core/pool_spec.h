// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Pools as the configuration names them.
#ifndef DAEMON_CORE_POOL_SPEC_H_
#define DAEMON_CORE_POOL_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/core/stats.h"

namespace heapbroker {

// A pool of one device.
struct ResolvedPool {
  std::string name;
  uint32_t memory_type = 0;
  bool every_type = false;  // One of those made for every memory type.
  bool transient = false;   // For requests marked so only.
  PoolLimits limits;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_POOL_SPEC_H_

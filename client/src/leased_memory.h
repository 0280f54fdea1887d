// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A block that this process has leased and imported.
#ifndef CLIENT_SRC_LEASED_MEMORY_H_
#define CLIENT_SRC_LEASED_MEMORY_H_

#include <cstdint>
#include <string>

#include "heapbroker/lease.h"
#include "heapbroker/units.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

struct LeasedMemory {
  Lease lease{};
  DeviceBuffer buffer{};  // Goes before the lease.

  // Blocks of equal kinds can stand in for each other, if they are large enough.
  std::string kind{};
  Bytes size{};   // That can be used: ImportFacts::size.
  Bytes bytes{};  // That the heap lacks: ImportFacts::allocation_size.
  uint32_t device_index = 0;
  uint32_t heap_index = 0;

  bool IsOf(uint32_t device, uint32_t heap) const {
    return device_index == device && heap_index == heap;
  }
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_LEASED_MEMORY_H_

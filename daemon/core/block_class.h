// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What makes two blocks interchangeable for the device.
#ifndef DAEMON_CORE_BLOCK_CLASS_H_
#define DAEMON_CORE_BLOCK_CLASS_H_

#include <compare>
#include <cstdint>

namespace heapbroker {

enum class HandleType : uint8_t { kOpaqueFd };

struct BlockClass {
  uint32_t memory_type = 0;
  HandleType handle_type = HandleType::kOpaqueFd;

  friend auto operator<=>(const BlockClass&, const BlockClass&) = default;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_BLOCK_CLASS_H_

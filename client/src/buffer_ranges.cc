// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/buffer_ranges.h"

#include <cstdint>

namespace heapbroker {

uint64_t AddressOf(const BufferRange& range) {
  if (range.host_visible()) return reinterpret_cast<uintptr_t>(*range.host());
  return range.device_address().value_or(range.offset().count());
}

VkBufferUsageFlags ArenaUsage(const ImportFacts& facts, const VulkanContext& context) {
  constexpr VkBufferUsageFlags kUsage =
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const bool addresses = facts.device_address && context.device_addresses;
  return kUsage | (addresses ? VkBufferUsageFlags{VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT} : 0);
}

Arena ArenaOver(const BufferRange& range) { return Arena(range.size(), AddressOf(range)); }

}  // namespace heapbroker

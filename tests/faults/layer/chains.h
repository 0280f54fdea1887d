// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Vulkan's two idioms: chains of structures, and lists with their length.
#ifndef TESTS_FAULTS_LAYER_CHAINS_H_
#define TESTS_FAULTS_LAYER_CHAINS_H_

#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heapbroker::faults {

// The first structure of type `type` in a chain that begins at `next`; null where
// there is none.
template <typename Structure>
const Structure* FindInChain(const void* next, VkStructureType type) {
  for (const auto* at = static_cast<const VkBaseInStructure*>(next); at != nullptr;
       at = at->pNext) {
    if (at->sType == type) return reinterpret_cast<const Structure*>(at);
  }
  return nullptr;
}
template <typename Structure>
Structure* FindInChain(void* next, VkStructureType type) {
  return const_cast<Structure*>(FindInChain<Structure>(static_cast<const void*>(next), type));
}

// Answers a call that returns a list: its length where `out` is null, else as much
// of it as there is room for.
template <typename Element>
VkResult ReturnList(const std::vector<Element>& list, uint32_t* count, Element* out) {
  const auto size = static_cast<uint32_t>(list.size());
  if (out == nullptr) {
    *count = size;
    return VK_SUCCESS;
  }
  *count = std::min(*count, size);
  std::copy_n(list.begin(), *count, out);
  return *count < size ? VK_INCOMPLETE : VK_SUCCESS;
}

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_CHAINS_H_

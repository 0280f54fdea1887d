// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// In the place of vma_contenders.cc where vk_mem_alloc.h was not found.
#include "tests/benchmark/vma_contenders.h"

namespace heapbroker {

std::vector<Contender> VmaContenders(const VulkanContext&) { return {}; }

}  // namespace heapbroker

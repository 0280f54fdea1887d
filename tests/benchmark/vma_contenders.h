// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// VulkanMemoryAllocator, where its header is on the machine.
#ifndef TESTS_BENCHMARK_VMA_CONTENDERS_H_
#define TESTS_BENCHMARK_VMA_CONTENDERS_H_

#include <vector>

#include "heapbroker/vulkan_importer.h"
#include "tests/benchmark/contender.h"

namespace heapbroker {

// Its virtual block, which is its bookkeeping without memory; the same asked to lose
// as little as it can; and the memory of a device. None where this was built without
// it. The context must outlive them.
std::vector<Contender> VmaContenders(const VulkanContext& context);

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_VMA_CONTENDERS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a program does that asks the driver itself.
#ifndef TESTS_BENCHMARK_DIRECT_VULKAN_H_
#define TESTS_BENCHMARK_DIRECT_VULKAN_H_

#include "absl/status/status.h"
#include "heapbroker/types.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// Allocates exportable memory of the block's size and memory type, exports it,
// closes the descriptor and frees the memory.
absl::Status AllocateExportFree(const VulkanContext& context, const ImportFacts& block);

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_DIRECT_VULKAN_H_

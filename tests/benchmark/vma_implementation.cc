// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The one translation unit that VulkanMemoryAllocator's header asks for.
#define VMA_IMPLEMENTATION
#include "vk_mem_alloc.h"

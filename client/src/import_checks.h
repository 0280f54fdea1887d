// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What must be true before a driver may see a descriptor. Drivers accept wrong
// facts without a word, hang on a pipe, or die later, so the library looks first.
// All errors are FAILED_PRECONDITION unless noted, and say both sides.
#ifndef CLIENT_SRC_IMPORT_CHECKS_H_
#define CLIENT_SRC_IMPORT_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "client/src/importing_device.h"
#include "heapbroker/types.h"
#include "heapbroker/vulkan_importer.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

// The same physical device and the same driver.
absl::Status CheckDevice(const BrokerDevice& broker, const ImportingDevice& importer);

// The memory type exists and has the flags that it has at the broker.
absl::Status CheckMemoryType(const ImportFacts& facts,
                             const VkPhysicalDeviceMemoryProperties& memory);

// What the block was made for covers `usage`, and the application's device was made
// for the block.
//   INVALID_ARGUMENT  `usage` is 0
absl::Status CheckUsage(const ImportFacts& facts, VkBufferUsageFlags usage,
                        const VulkanContext& context);

// The same of the one buffer that the import is dedicated to.
absl::Status CheckDedicatedUsage(const ImportFacts& facts, VkBufferUsageFlags usage);

// The usage of the one buffer of a dedicated block: kDedicatedBufferUsage, and of
// device addresses where the block has them.
VkBufferUsageFlags DedicatedUsage(const ImportFacts& facts);

// The memory type that a dma-buf is imported as: one that the driver allows for it
// (`descriptor_types`, vkGetMemoryFdPropertiesKHR) and for the buffer
// (`buffer_types`). The exporter's own where `same_device`; else one with its
// property flags, else one that the host can map if it could there, else any.
absl::StatusOr<uint32_t> ChooseDmaBufType(const ImportFacts& facts, bool same_device,
                                          uint32_t descriptor_types, uint32_t buffer_types,
                                          const VkPhysicalDeviceMemoryProperties& memory);

// The buffer that is to lie in the block may, and fits.
absl::Status CheckRequirements(const ImportFacts& facts, const VkMemoryRequirements& requirements);

// The descriptor can be what its handle type says. Opaque: no pipe (on which a
// driver may hang), socket or directory. dma-buf: nothing else, since drivers take
// any file that can be mapped. And where the kernel says how large it is (a memfd, a
// dma-buf), not smaller than the allocation.
//   INVALID_ARGUMENT  not open
absl::Status CheckDescriptor(const ImportFacts& facts, int fd);

// How many imports the importer may have at a time: what the device allows less
// the application's own allocations and a margin, because passing the device's
// number is undefined behaviour and drivers allocate for themselves as well.
uint32_t MaxImports(uint32_t max_allocation_count, uint32_t other_allocations);

}  // namespace heapbroker
#endif  // CLIENT_SRC_IMPORT_CHECKS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A device in the core's words.
#ifndef DAEMON_VULKAN_DEVICE_DESCRIPTION_H_
#define DAEMON_VULKAN_DEVICE_DESCRIPTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_info.h"
#include "daemon/vulkan/device_snapshot.h"

namespace heapbroker {

// VkMemoryRequirements.memoryTypeBits of a buffer of kExternalBufferUsage, by handle
// type.
struct ExternalBufferTypes {
  uint32_t opaque_fd = 0;
  uint32_t dma_buf = 0;

  friend bool operator==(const ExternalBufferTypes&, const ExternalBufferTypes&) = default;
};

// What the device says of itself. Memory types outside `external_buffer_types`
// cannot back what clients do, and are not exportable. Nor are types with properties
// beyond plain device and host memory: protected, lazily allocated and vendors' types
// need features or images that are not used here.
//
// Budgets of the driver that the specification rules out are not believed: one of
// 0 (it must be more) counts as none, and one over the heap's size as that size.
//
// `index` is the device's place in the daemon's own list, which is not the loader's.
DeviceInfo DescribeDevice(const DeviceSnapshot& snapshot,
                          const ExternalBufferTypes& external_buffer_types, uint32_t index = 0);

// One block that was allocated and exported on trial, or was not.
struct HandleTrial {
  BlockClass block_class;
  absl::Status status;
};

// What is worth a trial: each memory type for each handle type that `info` claims
// for it, dedicated where it must be.
std::vector<BlockClass> ClassesToTry(const DeviceInfo& info);

// And after that, where the device has addresses, one of what is left with one.
std::vector<BlockClass> AddressClassesToTry(const DeviceInfo& info);

// Takes out of `info` what failed on trial. Returns a sentence about each for the
// log: a driver that promises more than it does is worth knowing of.
std::vector<std::string> DropWhatFailed(absl::Span<const HandleTrial> trials, DeviceInfo& info);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_DESCRIPTION_H_

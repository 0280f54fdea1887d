// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A device in the core's words.
#ifndef DAEMON_VULKAN_DEVICE_DESCRIPTION_H_
#define DAEMON_VULKAN_DEVICE_DESCRIPTION_H_

#include <cstdint>

#include "daemon/core/device_info.h"
#include "daemon/vulkan/device_snapshot.h"

namespace heapbroker {

// `external_buffer_types` are VkMemoryRequirements.memoryTypeBits of a buffer of
// kExternalBufferUsage for opaque descriptors: types outside it cannot back what
// clients do, and are not exportable. Nor are types with properties beyond plain
// device and host memory: protected, lazily allocated and vendors' types need
// features or images that are not used here.
//
// Budgets of the driver that the specification rules out are not believed: one of
// 0 (it must be more) counts as none, and one over the heap's size as that size.
//
// `index` is the device's place in
// the daemon's own list, which is not the loader's.
DeviceInfo DescribeDevice(const DeviceSnapshot& snapshot, uint32_t external_buffer_types,
                          uint32_t index = 0);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_DESCRIPTION_H_

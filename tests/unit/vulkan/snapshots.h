// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Devices that exist only as what they say of themselves.
#ifndef TESTS_UNIT_VULKAN_SNAPSHOTS_H_
#define TESTS_UNIT_VULKAN_SNAPSHOTS_H_

#include <cstdint>
#include <string>

#include "daemon/vulkan/device_snapshot.h"

namespace heapbroker {

// A usable device with one memory type; `id` is the last byte of its UUIDs.
DeviceSnapshot MakeSnapshot(const std::string& name, VkPhysicalDeviceType type, uint8_t id);

}  // namespace heapbroker
#endif  // TESTS_UNIT_VULKAN_SNAPSHOTS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which device is which. Pure functions over snapshots.
#ifndef DAEMON_VULKAN_DEVICE_IDENTITY_H_
#define DAEMON_VULKAN_DEVICE_IDENTITY_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/vulkan/device_snapshot.h"

namespace heapbroker {

// Lower case, with four dashes.
std::string FormatUuid(const Uuid& uuid);

// "PCI 0000:01:00.0", "device node 226:128", or both, as the driver says. Empty
// where it says neither.
std::string FormatPlace(const DeviceSnapshot& device);

// "2 = 'NVIDIA GeForce RTX 4070' (discrete GPU, UUID abcd0000-…, driver UUID …,
// PCI 0000:01:00.0)", and why it cannot be used, if so.
std::string DescribeForPeople(absl::Span<const DeviceSnapshot> devices, size_t index);

// All of them, in order, as a sentence.
std::string ListForPeople(absl::Span<const DeviceSnapshot> devices);

// The same device by the same driver: a driver that is named twice to the loader
// shows its devices twice. Device UUID, driver UUID and place together decide;
// none does alone.
bool SameDevice(const DeviceSnapshot& a, const DeviceSnapshot& b);

// The same hardware, by whichever driver. False where the drivers do not say where
// their devices are.
bool SameHardware(const DeviceSnapshot& a, const DeviceSnapshot& b);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_IDENTITY_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which device the daemon opens. Pure functions over snapshots.
#ifndef DAEMON_VULKAN_DEVICE_CHOICE_H_
#define DAEMON_VULKAN_DEVICE_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/vulkan/device_snapshot.h"

namespace heapbroker {

struct DeviceSelector {
  // Empty for the best device. Otherwise, tried in this order:
  //   an index             as in the list that every error shows
  //   a device UUID        32 hexadecimal digits, or the form with four dashes
  //   a name               the whole of it, or a part that only one device has;
  //                        upper and lower case are the same
  std::string text;
  // Refuses software devices, also one that `text` names.
  bool require_hardware = false;
};

struct DeviceChoice {
  size_t index = 0;  // Into the snapshots.
  // Set for a software device, which must never be used silently: it is slow and
  // no boundary between tenants. Says whether it was asked for or is what was
  // left.
  std::string warning;
};

// Why the device can serve no blocks: FAILED_PRECONDITION, with a text that
// continues the device's name ("has only Vulkan 1.0; ...").
absl::Status CheckUsable(const DeviceSnapshot& device);

// The family of the queue that clears memory. Compute families without graphics
// are preferred, since they run beside clients' work; then those with compute,
// with graphics, and with transfers only. Empty where there is none of these.
std::optional<uint32_t> ChooseQueueFamily(const DeviceSnapshot& device);

// The device to open. The best one is the first, in the loader's order, of the
// best type among those that are usable: discrete, integrated, virtual, other,
// software. Every error lists what exists.
//   NOT_FOUND            there is no device at all, or none that `text` names
//   INVALID_ARGUMENT     `text` names several
//   FAILED_PRECONDITION  no device is usable, the one that was named is not, or
//                        it is a software device and hardware is required
absl::StatusOr<DeviceChoice> ChooseDevice(absl::Span<const DeviceSnapshot> devices,
                                          const DeviceSelector& selector);

// The devices that `selectors` mean, in their order, or, without any, all usable
// hardware devices, the best first; where there is none, what ChooseDevice takes
// for the best, with its warning. Hardware that two drivers show is one device
// there, and a warning where both are named.
//   INVALID_ARGUMENT  two selectors mean one device: names both
//   others            as ChooseDevice
absl::StatusOr<std::vector<DeviceChoice>> ChooseDevices(absl::Span<const DeviceSnapshot> devices,
                                                        absl::Span<const std::string> selectors,
                                                        bool require_hardware);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_CHOICE_H_

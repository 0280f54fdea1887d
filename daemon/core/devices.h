// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// All devices of the daemon.
#ifndef DAEMON_CORE_DEVICES_H_
#define DAEMON_CORE_DEVICES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "daemon/core/device_broker.h"

namespace heapbroker {

// Finds the device that a request is about. Each device is a broker of its own,
// with its own mutex and threads: one that is slow or lost does not touch the
// others. Never changes, and is therefore thread-safe.
class Devices {
 public:
  // Each at the position that is its DeviceInfo::index; the first is the default.
  // At least one, at most kMaxDevices; they must outlive this.
  explicit Devices(std::vector<DeviceBroker*> brokers) : brokers_(std::move(brokers)) {}

  absl::Span<DeviceBroker* const> all() const { return brokers_; }

  // The device of that index; the default where none is named.
  //   INVALID_ARGUMENT  there is no such device; says which there are
  absl::StatusOr<DeviceBroker*> Named(std::optional<uint32_t> index) const;

  // The device that gave the id out; null for an id that none did.
  DeviceBroker* Of(BlockId block) const { return At(DeviceIndexOf(block)); }
  DeviceBroker* Of(SegmentId segment) const { return At(DeviceIndexOf(segment)); }

 private:
  DeviceBroker* At(uint32_t index) const {
    return index < brokers_.size() ? brokers_[index] : nullptr;
  }

  const std::vector<DeviceBroker*> brokers_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICES_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/devices.h"

#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::StatusOr<DeviceBroker*> Devices::Named(std::optional<uint32_t> index) const {
  if (DeviceBroker* const broker = At(index.value_or(0))) return broker;
  return absl::InvalidArgumentError(absl::StrCat("device_index: is ", *index, "; this daemon has ",
                                                 brokers_.size(), " devices, counted from 0"));
}

}  // namespace heapbroker

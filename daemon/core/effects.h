// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What has to happen after a decision, once the mutex is released.
#ifndef DAEMON_CORE_EFFECTS_H_
#define DAEMON_CORE_EFFECTS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/device_observer.h"
#include "daemon/core/event_sink.h"
#include "daemon/core/fill_order.h"

namespace heapbroker {

// Collected under the mutex, carried out under none, in this order.
struct Effects {
  std::vector<Block> free;
  std::vector<FillOrder> fill;
  // How many of both DeviceBroker has put in its queues.
  size_t frees = 0;
  size_t fills = 0;
  std::vector<std::pair<SessionId, Event>> events;
  std::vector<std::string> warnings;
  std::vector<RecordedTurn> turns;
  bool read_heaps = false;            // Have DeviceMemory::ReadHeaps called.
  std::optional<absl::Time> wake_by;  // For the Alarm.
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_EFFECTS_H_

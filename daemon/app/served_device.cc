// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/served_device.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<std::unique_ptr<ServedDevice>> ServedDevice::Create(const VulkanDevice& device,
                                                                   ClearMode clear,
                                                                   const LedgerOptions& options,
                                                                   const Shared& shared) {
  HB_ASSIGN_OR_RETURN(std::unique_ptr<VulkanMemory> memory,
                      VulkanMemory::Create(device, {clear, ClearPath::kMapping}));
  return std::unique_ptr<ServedDevice>(new ServedDevice(std::move(memory), options, shared));
}

ServedDevice::ServedDevice(std::unique_ptr<VulkanMemory> memory, const LedgerOptions& options,
                           const Shared& shared)
    : memory_(std::move(memory)),
      watch_(memory_->info().index, shared.logger, shared.recorder),
      timer_([this] { broker_.Tick(); }),
      broker_(options,
              BrokerPorts{*memory_, threads_, shared.events, shared.clock, timer_, &watch_}) {}

void ServedDevice::EvictEverything() {
  timer_.Stop();
  // The pools, and the segments that nobody uses: all that sessions left. Said as a
  // Trim, which a recording has and a replay repeats.
  broker_.Trim({std::nullopt, Bytes(), /*segments=*/true}).status().IgnoreError();
}

}  // namespace heapbroker

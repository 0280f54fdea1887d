// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// One device of the daemon with all that is its own.
#ifndef DAEMON_APP_SERVED_DEVICE_H_
#define DAEMON_APP_SERVED_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/posix/logging.h"
#include "daemon/app/device_watch.h"
#include "daemon/app/timer.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/event_sink.h"
#include "daemon/trace/recorder.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/device_thread.h"
#include "daemon/vulkan/vulkan_memory.h"

namespace heapbroker {

// A device, its threads, its timer and its broker: nothing of it is shared with
// another device, so that one which hangs delays none of the others.
class ServedDevice {
 public:
  // What all devices share. All must outlive them.
  struct Shared {
    EventSink& events;
    const Clock& clock;
    Logger& logger;
    Recorder* recorder = nullptr;  // Null: nothing is recorded.
  };

  // `device` must outlive this. Errors as VulkanMemory::Create.
  static absl::StatusOr<std::unique_ptr<ServedDevice>> Create(const VulkanDevice& device,
                                                              ClearMode clear,
                                                              const LedgerOptions& options,
                                                              const Shared& shared);
  ServedDevice(const ServedDevice&) = delete;
  ServedDevice& operator=(const ServedDevice&) = delete;
  // FreeEverything must have been called.
  ~ServedDevice() = default;

  DeviceBroker& broker() { return broker_; }

  // Ends the timer and evicts what nobody holds; the device's threads free it.
  void EvictEverything();
  // Returns when the driver has freed everything, which takes as long as it likes.
  void FreeEverything() { threads_.Stop(); }

 private:
  ServedDevice(std::unique_ptr<VulkanMemory> memory, const LedgerOptions& options,
               const Shared& shared);

  const std::unique_ptr<VulkanMemory> memory_;
  DeviceWatch watch_;
  DeviceThreads threads_;
  Timer timer_;  // Calls the broker, which is made later, only when that asks for it.
  DeviceBroker broker_;
};

}  // namespace heapbroker
#endif  // DAEMON_APP_SERVED_DEVICE_H_

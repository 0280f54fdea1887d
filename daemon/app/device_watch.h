// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a device's broker tells, to the log and to the recorder.
#ifndef DAEMON_APP_DEVICE_WATCH_H_
#define DAEMON_APP_DEVICE_WATCH_H_

#include <cstdint>
#include <string>

#include "common/base/mutex.h"
#include "common/posix/log_limiter.h"
#include "common/posix/logging.h"
#include "daemon/core/device_observer.h"
#include "daemon/trace/recorder.h"

namespace heapbroker {

// Clients can bring about warnings, with requests that the driver refuses: each device's
// are written at a bounded rate. Thread-safe.
class DeviceWatch final : public DeviceObserver {
 public:
  // Both must outlive this; without a recorder turns are not even made.
  DeviceWatch(uint32_t device, Logger& logger, Recorder* recorder);

  bool WantsTurns() const override { return recorder_ != nullptr; }
  void OnTurn(RecordedTurn turn) override;
  void OnWarning(std::string text) override;

 private:
  const uint32_t device_;
  Logger& logger_;
  Recorder* const recorder_;
  Mutex mutex_;
  LogLimiter limiter_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_APP_DEVICE_WATCH_H_

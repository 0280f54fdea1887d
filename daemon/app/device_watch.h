// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a device's broker tells, to the log and to the recorder.
#ifndef DAEMON_APP_DEVICE_WATCH_H_
#define DAEMON_APP_DEVICE_WATCH_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/posix/logging.h"
#include "daemon/core/device_observer.h"
#include "daemon/trace/recorder.h"

namespace heapbroker {

// Thread-safe.
class DeviceWatch final : public DeviceObserver {
 public:
  // Both must outlive this; without a recorder turns are not even made.
  DeviceWatch(uint32_t device, Logger& logger, Recorder* recorder)
      : device_(device), logger_(logger), recorder_(recorder) {}

  bool WantsTurns() const override { return recorder_ != nullptr; }
  void OnTurn(RecordedTurn turn) override { recorder_->Record(device_, std::move(turn)); }
  void OnWarning(std::string text) override {
    logger_.Warning(absl::StrCat("device ", device_, ": ", text));
  }

 private:
  const uint32_t device_;
  Logger& logger_;
  Recorder* const recorder_;
};

}  // namespace heapbroker
#endif  // DAEMON_APP_DEVICE_WATCH_H_

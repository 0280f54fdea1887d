// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/device_watch.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

// More than a device has to say of itself at its start.
constexpr uint32_t kBurst = 20;
constexpr std::chrono::seconds kInterval{10};

}  // namespace

DeviceWatch::DeviceWatch(uint32_t device, Logger& logger, Recorder* recorder)
    : device_(device), logger_(logger), recorder_(recorder), limiter_(logger, kBurst, kInterval) {}

void DeviceWatch::OnTurn(RecordedTurn turn) { recorder_->Record(device_, std::move(turn)); }

void DeviceWatch::OnWarning(std::string text) {
  std::optional<std::string> line;
  {
    MutexLock lock(mutex_);
    line = limiter_.Pass(LogLimiter::Clock::now(), text);
  }
  if (line.has_value()) logger_.Warning(absl::StrCat("device ", device_, ": ", *line));
}

}  // namespace heapbroker

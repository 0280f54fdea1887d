// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// An observer that keeps what it was told.
#ifndef TESTS_FAKES_RECORDED_TURNS_H_
#define TESTS_FAKES_RECORDED_TURNS_H_

#include <string>
#include <utility>
#include <vector>

#include "daemon/core/device_observer.h"

namespace heapbroker {

// For tests with one thread.
class RecordedTurns final : public DeviceObserver {
 public:
  bool WantsTurns() const override { return true; }
  void OnTurn(RecordedTurn turn) override { turns_.push_back(std::move(turn)); }
  void OnWarning(std::string text) override { warnings_.push_back(std::move(text)); }

  // In the order in which they arrived.
  const std::vector<RecordedTurn>& turns() const { return turns_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<RecordedTurn> turns_;
  std::vector<std::string> warnings_;
};

}  // namespace heapbroker
#endif  // TESTS_FAKES_RECORDED_TURNS_H_

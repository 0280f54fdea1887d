// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// One order's way through the device.
#ifndef DAEMON_CORE_FILL_JOB_H_
#define DAEMON_CORE_FILL_JOB_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "daemon/core/device_memory.h"
#include "daemon/core/device_observer.h"
#include "daemon/core/fill_order.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Has the device make one item after the other, and stops where the ledger has to
// decide:
//
//   Work ──▶ a size was told: whether that much can be had ──▶ Decided ──▶ Work …
//     │
//     └────▶ over: all items are made, or one failed
//
// A size that cannot be had, at the device or in the budget, is tried once more as it
// was asked for where it had been rounded up. Not thread-safe.
class FillJob {
 public:
  explicit FillJob(FillOrder order) : order_(std::move(order)) {}

  OrderId order() const { return order_.id; }
  bool over() const { return !result_.status.ok() || result_.made.size() == order_.items.size(); }

  struct Question {
    size_t item = 0;
    BufferNeeds needs;
  };
  // May take as long as the device does. Unset where the job is over.
  std::optional<Question> Work(DeviceMemory& device);
  // Answers the question; may end the job.
  //   RESOURCE_EXHAUSTED  there is not that much; any other error ends the job, too
  void Decided(const absl::Status& status);

  // When it is over.
  Filled TakeFilled() { return std::move(result_); }
  // What the device answered since the last call of this.
  std::vector<DeviceAnswer> TakeAnswers() { return std::exchange(answers_, {}); }

 private:
  void AskForSize(DeviceMemory& device);
  void Allocate(DeviceMemory& device);
  void Clear(DeviceMemory& device);
  void Note(const absl::Status& status, Bytes required = Bytes());
  void Made(DeviceAllocation allocation);
  // Of the item, or of the size that it was rounded up to.
  void Fail(absl::Status status);

  const FillItem& item() const { return order_.items[result_.made.size()]; }

  FillOrder order_;
  Filled result_;
  // Of the item that is in work.
  std::optional<Bytes> size_;      // Asked for: planned, then exact.
  std::optional<Bytes> required_;  // Told by the device.
  std::vector<DeviceAnswer> answers_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_FILL_JOB_H_

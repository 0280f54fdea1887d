// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Tells a reference model what the core has the device do.
#ifndef TESTS_MODEL_WATCHED_DEVICE_H_
#define TESTS_MODEL_WATCHED_DEVICE_H_

#include <vector>

#include "daemon/core/device_memory.h"
#include "daemon/core/simulated_device.h"
#include "tests/model/reference_model.h"

namespace heapbroker {

// For tests with one thread.
class WatchedDevice final : public DeviceMemory {
 public:
  // Both must outlive this.
  WatchedDevice(SimulatedDevice& device, ReferenceModel& model) : device_(device), model_(model) {}

  const DeviceInfo& info() const override { return device_.info(); }

  absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) override {
    absl::StatusOr<Bytes> required = device_.RequiredSize(block_class, size);
    if (required.ok()) {
      model_.Sized(size);
    } else {
      model_.Refused();
    }
    return required;
  }

  absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class, Bytes size) override {
    absl::StatusOr<DeviceAllocation> made = device_.Allocate(block_class, size);
    if (made.ok()) {
      model_.Allocated(block_class, *made);
    } else {
      model_.Refused();
    }
    return made;
  }

  absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) override {
    absl::Status status = device_.Clear(block_class, allocation);
    if (status.ok()) {
      model_.Cleared(allocation.id);
    } else {
      model_.Refused();
    }
    return status;
  }

  std::vector<HeapReport> ReadHeaps() override {
    std::vector<HeapReport> reports = device_.ReadHeaps();
    model_.HeapsRead(reports);
    return reports;
  }

  void Free(DeviceAllocationId id) override {
    model_.Freed(id);
    device_.Free(id);
  }

 private:
  SimulatedDevice& device_;
  ReferenceModel& model_;
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_WATCHED_DEVICE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A device whose n-th call fails.
#ifndef TESTS_UNIT_CORE_FAILING_DEVICE_H_
#define TESTS_UNIT_CORE_FAILING_DEVICE_H_

#include <cstdint>
#include <vector>

#include "daemon/core/device_memory.h"
#include "daemon/core/simulated_device.h"

namespace heapbroker {

// Counts every call that can fail, from 1. For tests with one thread.
class FailingDevice final : public DeviceMemory {
 public:
  struct Plan {
    uint64_t first = 0;  // The first call that fails; 0: none.
    bool for_ever = false;
    absl::StatusCode code = absl::StatusCode::kInternal;
  };
  explicit FailingDevice(const Plan& plan) : plan_(plan) {}

  const DeviceInfo& info() const override { return device_.info(); }

  absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) override {
    if (Fails()) return Failure();
    return device_.RequiredSize(block_class, size);
  }
  absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class, Bytes size) override {
    if (Fails()) return Failure();
    return device_.Allocate(block_class, size);
  }
  absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) override {
    if (Fails()) return Failure();
    return device_.Clear(block_class, allocation);
  }
  // A driver that does not answer says nothing.
  std::vector<HeapReport> ReadHeaps() override {
    ++calls_;
    const bool fails = plan_.for_ever ? calls_ >= plan_.first : calls_ == plan_.first;
    if (plan_.first != 0 && fails) return {};
    return {{info().heaps[0].size, Bytes()}};
  }
  void Free(DeviceAllocationId id) override { device_.Free(id); }

  uint64_t calls() const { return calls_; }
  // Errors that were returned.
  uint64_t failures() const { return failures_; }
  SimulatedDevice::Counts counts() const { return device_.counts(); }

 private:
  bool Fails() {
    ++calls_;
    if (plan_.first == 0) return false;
    return plan_.for_ever ? calls_ >= plan_.first : calls_ == plan_.first;
  }
  absl::Status Failure() {
    ++failures_;
    return absl::Status(plan_.code, "injected");
  }

  const Plan plan_;
  SimulatedDevice device_;
  uint64_t calls_ = 0;
  uint64_t failures_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CORE_FAILING_DEVICE_H_

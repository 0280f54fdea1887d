// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A device without hardware: what policy is tested against, in microseconds.
#ifndef DAEMON_CORE_SIMULATED_DEVICE_H_
#define DAEMON_CORE_SIMULATED_DEVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "daemon/core/device_memory.h"

namespace heapbroker {

// One heap and one memory type that is everything at once, as software devices
// have it. The budget is the caller's to choose; the "driver" has no limit.
DeviceInfo SimulatedDeviceInfo();

// Keeps the promises of DeviceMemory, gives the size of every allocation and
// remembers each, but has no bytes behind them. Thread-safe.
class SimulatedDevice final : public DeviceMemory {
 public:
  // Makes the descriptor of a new allocation. Without one, handles have fd -1.
  using ExportFunction = std::function<std::shared_ptr<const ExportedHandle>(Bytes)>;

  explicit SimulatedDevice(DeviceInfo info = SimulatedDeviceInfo(), ExportFunction exporter = {});

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) override;
  absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class, Bytes allocation_size) override;
  absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) override;
  std::vector<HeapReport> ReadHeaps() override;
  void Free(DeviceAllocationId id) override;

  // How a driver may behave. The next `count` calls end with `status`; of clears those
  // behind the next `after`.
  void FailAllocations(absl::Status status, int count);
  void FailClears(absl::Status status, int count, int after = 0);
  // Drivers pad: every size is rounded up to `granularity` and `extra` added.
  void PadSizes(Bytes granularity, Bytes extra);
  // What ReadHeaps says from now on.
  void ReportHeaps(std::vector<HeapReport> reports);

  struct Counts {
    uint64_t allocations = 0;  // Calls that succeeded.
    uint64_t frees = 0;
    uint64_t clears = 0;
    size_t live = 0;
    Bytes live_bytes;
    Bytes peak_bytes;
    size_t peak_live = 0;
  };
  Counts counts() const;

 private:
  struct Failure {
    absl::Status status;
    int left = 0;
    int after = 0;
    absl::Status Next();
  };

  const DeviceInfo info_;
  const ExportFunction exporter_;
  mutable Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<DeviceAllocationId, Bytes> live_ ABSL_GUARDED_BY(mutex_);
  Failure allocation_failure_ ABSL_GUARDED_BY(mutex_);
  Failure clear_failure_ ABSL_GUARDED_BY(mutex_);
  Bytes granularity_ ABSL_GUARDED_BY(mutex_) = Bytes(1);
  Bytes extra_ ABSL_GUARDED_BY(mutex_);
  std::vector<HeapReport> heap_reports_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_SIMULATED_DEVICE_H_

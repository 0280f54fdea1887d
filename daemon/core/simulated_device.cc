// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/simulated_device.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

class NoDescriptor final : public ExportedHandle {
 public:
  int fd() const override { return -1; }
};

}  // namespace

DeviceInfo SimulatedDeviceInfo() {
  DeviceInfo info;
  info.name = "simulated device";
  info.driver_info = "no driver";
  info.type = DeviceType::kDiscreteGpu;
  info.heaps.push_back({GiB(1), true});
  MemoryTypeInfo type;
  type.device_local = type.host_visible = type.host_coherent = type.host_cached = true;
  type.property_flags = 0xF;
  type.exportable = {.opaque_fd = true, .dma_buf = false};
  info.memory_types.push_back(type);
  info.max_allocation_size = GiB(1);
  info.max_allocation_count = 4096;
  return info;
}

SimulatedDevice::SimulatedDevice(DeviceInfo info, ExportFunction exporter)
    : info_(std::move(info)), exporter_(std::move(exporter)) {}

absl::Status SimulatedDevice::Failure::Next() {
  if (left == 0 || after-- > 0) return absl::OkStatus();
  --left;
  return status;
}

absl::StatusOr<Bytes> SimulatedDevice::RequiredSize(BlockClass, Bytes size) {
  MutexLock lock(mutex_);
  std::optional<Bytes> padded = AlignUp(size, granularity_);
  if (padded) padded = CheckedAdd(*padded, extra_);
  if (size == Bytes() || !padded || *padded > info_.max_allocation_size) {
    return absl::OutOfRangeError(absl::StrCat("no buffer of ", size.count(), " bytes can be made"));
  }
  return *padded;
}

absl::StatusOr<DeviceAllocation> SimulatedDevice::Allocate(BlockClass, Bytes allocation_size) {
  if (allocation_size == Bytes() || allocation_size > info_.max_allocation_size) {
    return absl::OutOfRangeError(
        absl::StrCat("no allocation of ", allocation_size.count(), " bytes can be made"));
  }
  std::shared_ptr<const ExportedHandle> exported =
      exporter_ ? exporter_(allocation_size) : std::make_shared<const NoDescriptor>();
  MutexLock lock(mutex_);
  if (absl::Status failure = allocation_failure_.Next(); !failure.ok()) return failure;
  const DeviceAllocationId id(++last_id_);
  live_.emplace(id, allocation_size);
  ++counts_.allocations;
  counts_.live_bytes += allocation_size;
  counts_.peak_bytes = std::max(counts_.peak_bytes, counts_.live_bytes);
  counts_.peak_live = std::max(counts_.peak_live, live_.size());
  return DeviceAllocation{id, allocation_size, std::move(exported)};
}

absl::Status SimulatedDevice::Clear(BlockClass, const DeviceAllocation&) {
  MutexLock lock(mutex_);
  ++counts_.clears;
  return clear_failure_.Next();
}

void SimulatedDevice::Free(DeviceAllocationId id) {
  MutexLock lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  counts_.live_bytes -= found->second;
  ++counts_.frees;
  live_.erase(found);
}

std::vector<HeapReport> SimulatedDevice::ReadHeaps() {
  MutexLock lock(mutex_);
  return heap_reports_;
}

void SimulatedDevice::ReportHeaps(std::vector<HeapReport> reports) {
  MutexLock lock(mutex_);
  heap_reports_ = std::move(reports);
}

void SimulatedDevice::FailAllocations(absl::Status status, int count) {
  MutexLock lock(mutex_);
  allocation_failure_ = {std::move(status), count};
}

void SimulatedDevice::FailClears(absl::Status status, int count, int after) {
  MutexLock lock(mutex_);
  clear_failure_ = {std::move(status), count, after};
}

void SimulatedDevice::PadSizes(Bytes granularity, Bytes extra) {
  MutexLock lock(mutex_);
  granularity_ = granularity;
  extra_ = extra;
}

SimulatedDevice::Counts SimulatedDevice::counts() const {
  MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.live = live_.size();
  return counts;
}

}  // namespace heapbroker

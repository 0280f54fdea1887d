// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/filled_core.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "tests/benchmark/allocated_bytes.h"

namespace heapbroker {
namespace {

constexpr TenantId kTenant(1000);
constexpr SessionId kSession(1);
constexpr Bytes kHotSize = MiB(64);

// Everything may stay idle.
ResolvedPool NoLimits() {
  ResolvedPool pool;
  pool.name = "type 0";
  pool.every_type = true;
  pool.limits.max_free_allocation_count = UINT64_MAX;
  return pool;
}

LedgerOptions Options() {
  LedgerOptions options;
  options.admission.heaps = {{Bytes(uint64_t{1} << 50)}};
  options.admission.pools = {NoLimits()};
  return options;
}

class NoDescriptor final : public ExportedHandle {
 public:
  int fd() const override { return -1; }
};

}  // namespace

FilledPool::FilledPool(int64_t idle, Asked asked) : pool_(NoLimits(), 0) {
  for (int64_t i = 1; i <= idle; ++i) {
    const Bytes size = KiB(64 * i);
    const Block block{BlockId(i), kTenant, BlockClass(), 0, {DeviceAllocationId(i), size, {}},
                      size};
    pool_.Reserve(size);
    pool_.Commit(size, block, size);
    asked_.push_back(size);
    if (!pool_.Release(block, size, ++stamp_, absl::UnixEpoch()).empty()) asked_.clear();
  }
  std::shuffle(asked_.begin(), asked_.end(), std::mt19937());
  if (asked == Asked::kHot) asked_.resize(1);
}

bool FilledPool::HitOnce() {
  const Bytes size = asked_[next_];
  next_ = next_ + 1 == asked_.size() ? 0 : next_ + 1;
  const auto found = pool_.Find(kTenant, BlockClass(), {size, size});
  const auto* const claim = std::get_if<Claim>(&found);
  if (claim == nullptr) return false;
  return pool_.Release(pool_.Take(*claim, size), size, ++stamp_, absl::UnixEpoch()).empty();
}

WeightlessDevice::WeightlessDevice()
    : info_(SimulatedDeviceInfo()), handle_(std::make_shared<const NoDescriptor>()) {}

absl::StatusOr<DeviceAllocation> WeightlessDevice::Allocate(BlockClass, Bytes size) {
  return DeviceAllocation{DeviceAllocationId(++last_id_), size, handle_};
}

void FilledBroker::Granted::Deliver(SessionId, Event event) {
  const auto* const done = std::get_if<AllocateDone>(&event);
  if (done != nullptr && done->grant.ok()) leased_.push_back(done->grant->blocks.front().id);
}

FilledBroker::FilledBroker() : broker_(Options(), {device_, executor_, events_, clock_, alarm_}) {
  broker_.AddSession(kSession, kTenant).IgnoreError();
  for (uint64_t power = 64 << 10; power < 16 << 20; power *= 2) {
    for (uint64_t step = 0; step < 8; ++step) sizes_.push_back(Bytes(power + step * power / 8));
  }
  std::shuffle(sizes_.begin(), sizes_.end(), std::mt19937());
}

bool FilledBroker::Lease(int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) {
    const Bytes size = i == 0 ? kHotSize : NextSize();
    if (!Start(size).ok()) return false;
    executor_.RunAll();
  }
  return static_cast<int64_t>(leased_.size()) == blocks;
}

void FilledBroker::ReleaseAll() {
  for (const BlockId block : leased_) broker_.Release(kSession, {block}).IgnoreError();
  leased_ = {};
  // Where a block lies does not follow from its size.
  std::shuffle(sizes_.begin(), sizes_.end(), std::mt19937(2));
}

absl::StatusOr<std::variant<Grant, Deferred>> FilledBroker::Start(Bytes size) {
  AllocateRequest request;
  request.blocks.resize(1);
  request.blocks[0].size = size;
  return broker_.Allocate(kSession, CallId(++last_call_), request);
}

bool FilledBroker::HitOnce(Asked asked) {
  const auto outcome = Start(asked == Asked::kHot ? kHotSize : NextSize());
  if (!outcome.ok()) return false;
  const auto* const grant = std::get_if<Grant>(&*outcome);
  return grant != nullptr && broker_.Release(kSession, {grant->blocks.front().id}).ok();
}

MemoryCost MeasureMemory(int64_t blocks) {
  FilledBroker broker;
  const size_t empty = AllocatedBytes();
  broker.Lease(blocks);
  const size_t leased = AllocatedBytes();
  broker.ReleaseAll();
  const size_t idle = AllocatedBytes();
  // The list of what is leased is the measurement's own: at most 16 bytes of each.
  return {static_cast<double>(idle - empty) / static_cast<double>(blocks),
          static_cast<double>(leased - empty) / static_cast<double>(blocks)};
}

}  // namespace heapbroker

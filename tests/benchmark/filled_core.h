// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A pool, and a whole broker, in which many blocks are idle.
#ifndef TESTS_BENCHMARK_FILLED_CORE_H_
#define TESTS_BENCHMARK_FILLED_CORE_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "daemon/core/caching_pool.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/recorded_events.h"

namespace heapbroker {

// What is asked for. The same block again and again: only the depth of the search
// grows. Any of the idle blocks, in random order: each is found in memory that no
// cache of the processor holds any more.
enum class Asked { kHot, kRandom };

// Idle blocks of sizes that all differ.
class FilledPool {
 public:
  FilledPool(int64_t idle, Asked asked);
  // Takes a block and returns it. False where none was idle.
  bool HitOnce();

 private:
  CachingPool pool_;
  ReleaseStamp stamp_ = 0;
  std::vector<Bytes> asked_;
  size_t next_ = 0;
};

// Has no memory of its own for an allocation, so that what a block costs is the core's.
class WeightlessDevice final : public DeviceMemory {
 public:
  WeightlessDevice();
  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<Bytes> RequiredSize(BlockClass, Bytes size) override { return size; }
  absl::StatusOr<DeviceAllocation> Allocate(BlockClass, Bytes size) override;
  absl::Status Clear(BlockClass, const DeviceAllocation&) override { return absl::OkStatus(); }
  std::vector<HeapReport> ReadHeaps() override { return {}; }
  void Free(DeviceAllocationId) override {}

 private:
  const DeviceInfo info_;
  const std::shared_ptr<const ExportedHandle> handle_;
  uint64_t last_id_ = 0;
};

// One session of one tenant. Blocks have the sizes that new blocks are rounded to,
// of 64 KiB to 15 MiB; hot is a size of which one block is idle.
class FilledBroker {
 public:
  FilledBroker();
  // Leases so many blocks; and gives all back.
  bool Lease(int64_t blocks);
  void ReleaseAll();
  // Leases a block and returns it. False where the cache did not serve it.
  bool HitOnce(Asked asked);

 private:
  Bytes NextSize() { return sizes_[next_++ % sizes_.size()]; }
  absl::StatusOr<std::variant<Grant, Deferred>> Start(Bytes size);

  WeightlessDevice device_;
  RealClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  std::vector<BlockId> leased_;
  // Told of grants that came later.
  class Granted final : public EventSink {
   public:
    explicit Granted(std::vector<BlockId>& leased) : leased_(leased) {}
    void Deliver(SessionId, Event event) override;

   private:
    std::vector<BlockId>& leased_;
  } events_{leased_};
  DeviceBroker broker_;
  std::vector<Bytes> sizes_;
  size_t next_ = 0;
  uint64_t last_call_ = 0;
};

// What the core keeps in memory for each of many idle blocks, and for each of as many
// leases of one session.
struct MemoryCost {
  double idle_block = 0;
  double lease = 0;
};
MemoryCost MeasureMemory(int64_t blocks);

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_FILLED_CORE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/suballocators.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>

#include "absl/status/statusor.h"
#include "client/src/shared_ranges.h"
#include "heapbroker/device_allocator.h"
#include "heapbroker/local_cache.h"
#include "heapbroker/range_allocator.h"

namespace heapbroker {
namespace {

class MeasuredRanges {
 public:
  using Handle = RangeHandle;

  explicit MeasuredRanges(Bytes granularity)
      : ranges_({.size = kVirtualSize, .granularity = granularity}) {}

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    const absl::StatusOr<AllocatedRange> range = ranges_.Allocate(Bytes(size), Bytes(alignment));
    if (!range.ok()) return std::nullopt;
    return Placed<Handle>{range->handle, range->offset.count() + size};
  }
  void Free(const Handle& handle) { ranges_.Free(handle).IgnoreError(); }
  Bytes held() const { return Bytes(0); }

 private:
  RangeAllocator ranges_;
};

class MeasuredSharedRanges {
 public:
  struct Handle {
    RangeHandle range;
    uint32_t block = 0;
  };

  explicit MeasuredSharedRanges(Bytes granularity) : ranges_(granularity) {
    for (std::optional<Ranges::Place>& first : first_) {
      auto memory = std::make_unique<Nothing>();
      first = ranges_.AddBlock({.size = kVirtualSize, .granularity = granularity}, memory,
                               granularity, granularity);
    }
  }

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    const std::optional<Ranges::Place> place = ranges_.Allocate(Bytes(size), Bytes(alignment));
    if (!place) return std::nullopt;
    return Placed<Handle>{{place->range.handle, place->block}, place->range.offset.count() + size};
  }
  void Free(const Handle& handle) { ranges_.Free(handle.block, handle.range); }
  Bytes held() const { return Bytes(0); }

 private:
  struct Nothing {};
  using Ranges = SharedRanges<Nothing>;

  Ranges ranges_;
  std::optional<Ranges::Place> first_[2];  // Keep both blocks from being emptied.
};

class MeasuredDeviceAllocator {
 public:
  using Handle = DeviceAllocationHandle;

  MeasuredDeviceAllocator(MeasuredSession& session, Bytes granularity)
      : allocator_(
            DeviceAllocator::Create(LocalCache::Start(*session.client, *session.importer).value(),
                                    {.granularity = granularity})
                .value()) {}

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    const absl::StatusOr<DeviceAllocation> allocation =
        allocator_->Allocate(Bytes(size), Bytes(alignment));
    if (!allocation.ok()) return std::nullopt;
    return Placed<Handle>{allocation->handle};
  }
  void Free(const Handle& handle) { allocator_->Free(handle).IgnoreError(); }
  Bytes held() const { return allocator_->stats().peak_leased; }

 private:
  const std::unique_ptr<DeviceAllocator> allocator_;
};

class MeasuredPools {
 public:
  struct Handle {
    void* data = nullptr;
    size_t size = 0;
    size_t alignment = 0;
  };

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    return Placed<Handle>{{pools_.allocate(size, alignment), size, alignment}};
  }
  void Free(const Handle& handle) { pools_.deallocate(handle.data, handle.size, handle.alignment); }
  Bytes held() const { return upstream_.most(); }

 private:
  class CountedHeap final : public std::pmr::memory_resource {
   public:
    Bytes most() const { return most_; }

   private:
    void* do_allocate(size_t size, size_t alignment) override {
      held_ += Bytes(size);
      most_ = std::max(most_, held_);
      return std::pmr::new_delete_resource()->allocate(size, alignment);
    }
    void do_deallocate(void* data, size_t size, size_t alignment) override {
      held_ -= Bytes(size);
      std::pmr::new_delete_resource()->deallocate(data, size, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
      return this == &other;
    }

    Bytes held_;
    Bytes most_;
  };

  CountedHeap upstream_;
  std::pmr::unsynchronized_pool_resource pools_{
      std::pmr::pool_options{.largest_required_pool_block = MiB(16).count()}, &upstream_};
};

}  // namespace

Contender Ranges() {
  return MakeContender(
      "RangeAllocator",
      [](const AllocationTrace& trace) {
        return std::make_unique<MeasuredRanges>(Bytes(trace.usual_alignment));
      },
      [](const AllocationTrace& trace) {
        return std::make_unique<MeasuredSharedRanges>(Bytes(trace.usual_alignment));
      });
}

Contender Leases(MeasuredSession& session) {
  const auto make = [&session](const AllocationTrace& trace) {
    return std::make_unique<MeasuredDeviceAllocator>(session, Bytes(trace.usual_alignment));
  };
  return MakeContender("DeviceAllocator", make, make);
}

Contender Pools() {
  return MakeContender(
      "pmr pool_resource", [](const AllocationTrace&) { return std::make_unique<MeasuredPools>(); },
      [](const AllocationTrace&) { return std::make_unique<Locked<MeasuredPools>>(); });
}

}  // namespace heapbroker

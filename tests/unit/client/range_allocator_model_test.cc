// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A million random operations on RangeAllocator and on its model.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "heapbroker/range_allocator.h"
#include "tests/support/status_matchers.h"
#include "tests/support/trace_seeds.h"
#include "tests/unit/client/range_model.h"

namespace heapbroker {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

class RandomRanges {
 public:
  explicit RandomRanges(uint32_t seed)
      : random_(seed), options_(RandomOptions()), ranges_(options_), model_(options_) {
    // From nearly empty to nearly full, with few or many ranges.
    mean_size_ = std::max<uint64_t>(1, model_.size() >> Number(2, 12));
    wanted_live_ = Number(1, 2000);
  }

  void Step() {
    const uint64_t chance = Number(0, 99);
    if (chance < 4) return FreeWrongly();
    if (Number(0, 1999) == 0) return FreeAll();
    const bool grow = live_.size() < wanted_live_ ? chance < 65 : chance < 45;
    grow || live_.empty() ? Allocate() : Free(Number(0, live_.size() - 1));
  }

  void FreeAll() {
    while (!live_.empty() && !::testing::Test::HasFatalFailure()) {
      Free(Number(0, live_.size() - 1));
    }
    ASSERT_EQ(model_.gaps(), model_.size() == 0 ? 0u : 1u);
    ASSERT_TRUE(ranges_.empty());
  }

  void Describe(std::ostream& out) const {
    out << options_.size.count() << " bytes in granules of " << options_.granularity.count()
        << " from " << options_.base_address << ": " << allocations_ << " ranges allocated, "
        << refusals_ << " refused, " << wrong_frees_ << " freed wrongly";
  }
  uint64_t allocations() const { return allocations_; }
  uint64_t wrong_frees() const { return wrong_frees_; }

 private:
  struct Live {
    RangeHandle handle;
    uint64_t offset;
    uint64_t size;
  };

  uint64_t Number(uint64_t from, uint64_t to) {
    return std::uniform_int_distribution<uint64_t>(from, to)(random_);
  }

  RangeAllocatorOptions RandomOptions() {
    constexpr uint64_t kSizes[] = {1,       4095,    1 << 16,           1 << 18,
                                   1 << 20, 1 << 24, uint64_t{1} << 40, kMax};
    const uint64_t size = kSizes[Number(0, std::size(kSizes) - 1)];
    const uint64_t granularity = uint64_t{1} << Number(0, size > 4096 ? 12 : 3);
    return {.size = Bytes(size - Number(0, size / 3)),
            .granularity = Bytes(granularity),
            .base_address = Number(0, 2) == 0 ? random_() / granularity * granularity : 0};
  }

  uint64_t RandomSize() {
    switch (Number(0, 19)) {
      case 0:
        return 0;
      case 1:
        return kMax - Number(0, 1000);
      case 2:
        return Number(0, model_.size());
      default: {
        const double size =
            std::exponential_distribution<double>(1.0 / static_cast<double>(mean_size_))(random_);
        return static_cast<uint64_t>(std::min(size, 9e18));
      }
    }
  }
  uint64_t RandomAlignment() {
    return uint64_t{1} << (Number(0, 9) == 0 ? Number(0, 63) : Number(0, 8));
  }

  void Allocate() {
    const uint64_t size = RandomSize();
    const uint64_t alignment = RandomAlignment();
    const absl::StatusOr<AllocatedRange> range = ranges_.Allocate(Bytes(size), Bytes(alignment));
    if (range.ok()) {
      model_.Allocated(range->offset.count(), size, alignment);
      live_.push_back({range->handle, range->offset.count(), size});
      ++allocations_;
    } else {
      ASSERT_THAT(range, StatusIs(absl::StatusCode::kResourceExhausted, "bytes are free"));
      // With more gaps it may overlook one.
      if (model_.gaps() <= 256) {
        ASSERT_FALSE(model_.Fits(size, alignment)) << size;
      }
      ++refusals_;
    }
    CheckAll();
  }

  void Free(size_t which) {
    const Live freed = live_[which];
    live_[which] = live_.back();
    live_.pop_back();
    ASSERT_THAT(ranges_.Free(freed.handle), IsOk());
    model_.Freed(freed.offset, freed.size);
    freed_.push_back(freed.handle);
    if (freed_.size() > 1000) freed_.erase(freed_.begin(), freed_.begin() + 500);
    CheckAll();
  }

  void FreeWrongly() {
    RangeHandle handle;
    switch (Number(0, 3)) {
      case 0:
        if (freed_.empty()) return;
        handle = freed_[Number(0, freed_.size() - 1)];
        break;
      case 1:
        // Often with the slot of one that is alive here.
        handle = other_.Allocate(Bytes(Number(0, 100))).value().handle;
        break;
      case 2:
        handle = {.serial = random_(), .slot = static_cast<uint32_t>(Number(0, 4000))};
        break;
      default:
        if (live_.empty()) return;
        handle = live_[Number(0, live_.size() - 1)].handle;
        handle.slot += static_cast<uint32_t>(Number(1, 3));
    }
    ASSERT_THAT(ranges_.Free(handle), StatusIs(kNotFound, ""));
    ASSERT_THAT(ranges_.SizeOf(handle), StatusIs(kNotFound, ""));
    ++wrong_frees_;
    CheckAll();
  }

  void CheckAll() {
    const RangeAllocatorStats stats = ranges_.Stats();
    ASSERT_EQ(stats.allocations, live_.size());
    model_.Check(stats);
  }

  std::mt19937_64 random_;
  RangeAllocatorOptions options_;
  RangeAllocator ranges_;
  RangeAllocator other_{{.size = GiB(1)}};
  RangeModel model_;
  uint64_t mean_size_ = 0;
  uint64_t wanted_live_ = 0;
  std::vector<Live> live_;
  std::vector<RangeHandle> freed_;
  uint64_t allocations_ = 0;
  uint64_t refusals_ = 0;
  uint64_t wrong_frees_ = 0;
};

class RangeAllocatorModelTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RangeAllocatorModelTest, AgreesWithPlainMaps) {
  RandomRanges trace(GetParam());
  uint32_t done = 0;
  while (done < TraceOperations() && !HasFailure()) {
    trace.Step();
    ++done;
  }
  std::cout << "seed " << GetParam() << ", " << done << " operations on ";
  trace.Describe(std::cout);
  std::cout << "\n";
  if (!HasFailure()) trace.FreeAll();
  EXPECT_GT(trace.allocations(), done / 20);
  EXPECT_GT(trace.wrong_frees(), done / 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RangeAllocatorModelTest, TraceSeeds());

}  // namespace
}  // namespace heapbroker

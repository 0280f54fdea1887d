// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/range_allocator.h"

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "client/src/serial_numbers.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr absl::StatusCode kExhausted = absl::StatusCode::kResourceExhausted;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

AllocatedRange MustAllocate(RangeAllocator& ranges, Bytes size, Bytes alignment = Bytes(1)) {
  const absl::StatusOr<AllocatedRange> range = ranges.Allocate(size, alignment);
  EXPECT_THAT(range, IsOk());
  return range.value_or(AllocatedRange{});
}

TEST(RangeAllocatorTest, HandsOutAllOfItAndJoinsItAgain) {
  RangeAllocator ranges({.size = KiB(1), .granularity = Bytes(64)});
  std::vector<RangeHandle> handles;
  for (int i = 0; i < 16; ++i) {
    handles.push_back(MustAllocate(ranges, Bytes(64)).handle);
  }
  EXPECT_THAT(ranges.Allocate(Bytes(1)), StatusIs(kExhausted, "0 of 1024 bytes are free"));
  // Every second one first, so that the others have free neighbours on both sides.
  for (size_t i = 0; i < 16; i += 2) ASSERT_THAT(ranges.Free(handles[i]), IsOk());
  EXPECT_EQ(ranges.Stats().free_ranges, 8u);
  EXPECT_EQ(ranges.Stats().largest_free, Bytes(64));
  for (size_t i = 1; i < 16; i += 2) ASSERT_THAT(ranges.Free(handles[i]), IsOk());
  EXPECT_EQ(ranges.Stats().free_ranges, 1u);
  EXPECT_EQ(MustAllocate(ranges, KiB(1)).offset, Bytes(0));
}

TEST(RangeAllocatorTest, RoundsSizesUpAndOffsetsToTheGranularity) {
  RangeAllocator ranges({.size = Bytes(1000), .granularity = Bytes(256)});
  EXPECT_EQ(ranges.Stats().size, Bytes(768));
  const AllocatedRange first = MustAllocate(ranges, Bytes(1));
  const AllocatedRange second = MustAllocate(ranges, Bytes(257));
  EXPECT_EQ(second.offset, Bytes(256));
  EXPECT_EQ(ranges.SizeOf(first.handle).value(), Bytes(256));
  EXPECT_EQ(ranges.SizeOf(second.handle).value(), Bytes(512));
  EXPECT_EQ(ranges.Stats().free, Bytes(0));
}

TEST(RangeAllocatorTest, PaddingStaysFree) {
  RangeAllocator ranges({.size = KiB(8), .granularity = Bytes(1)});
  const AllocatedRange small = MustAllocate(ranges, Bytes(3));
  const AllocatedRange aligned = MustAllocate(ranges, Bytes(10), KiB(4));
  EXPECT_EQ(aligned.offset, KiB(4));
  EXPECT_EQ(ranges.Stats().free_ranges, 2u);
  EXPECT_EQ(ranges.Stats().allocated, Bytes(13));
  EXPECT_EQ(MustAllocate(ranges, Bytes(4093)).offset, Bytes(3));
  ASSERT_THAT(ranges.Free(small.handle), IsOk());
  ASSERT_THAT(ranges.Free(aligned.handle), IsOk());
}

TEST(RangeAllocatorTest, FindsAnAlignedPlaceAlsoWhereRangesThatAreLongEnoughAreNot) {
  RangeAllocator ranges({.size = KiB(12), .granularity = Bytes(1)});
  // Leaves 5000 bytes from 1 on, with 904 from 4096 on, and 4096 from 8192 on.
  const RangeHandle front = MustAllocate(ranges, Bytes(1)).handle;
  const RangeHandle first = MustAllocate(ranges, Bytes(5000)).handle;
  MustAllocate(ranges, Bytes(3191));
  const RangeHandle second = MustAllocate(ranges, Bytes(4096)).handle;
  ASSERT_THAT(ranges.Free(second), IsOk());
  ASSERT_THAT(ranges.Free(first), IsOk());
  EXPECT_EQ(MustAllocate(ranges, Bytes(905), KiB(4)).offset, KiB(8));
  EXPECT_EQ(MustAllocate(ranges, Bytes(904), KiB(4)).offset, KiB(4));
  EXPECT_THAT(ranges.Allocate(Bytes(1), KiB(4)), StatusIs(kExhausted, ""));
  ASSERT_THAT(ranges.Free(front), IsOk());
  EXPECT_EQ(MustAllocate(ranges, Bytes(1), KiB(4)).offset, Bytes(0));
}

TEST(RangeAllocatorTest, TheAddressIsAlignedNotTheOffset) {
  RangeAllocator ranges({.size = KiB(64), .granularity = Bytes(64), .base_address = 0x12340});
  EXPECT_EQ(MustAllocate(ranges, Bytes(1), KiB(4)).offset, Bytes(0xcc0));
  EXPECT_EQ(MustAllocate(ranges, Bytes(1), KiB(32)).offset, Bytes(0x5cc0));
  EXPECT_EQ(MustAllocate(ranges, Bytes(1)).offset, Bytes(0));
  EXPECT_THAT(ranges.Allocate(Bytes(1), KiB(32)).status(), IsOk());
  EXPECT_THAT(ranges.Allocate(Bytes(1), KiB(32)), StatusIs(kExhausted, ""));
}

TEST(RangeAllocatorTest, RefusesAlignmentsThatAreNoPowerOfTwo) {
  RangeAllocator ranges({.size = KiB(4)});
  for (const uint64_t alignment : {uint64_t{0}, uint64_t{3}, uint64_t{48}, kMax}) {
    for (const uint64_t size : {0, 1, 5000}) {
      EXPECT_THAT(ranges.Allocate(Bytes(size), Bytes(alignment)),
                  StatusIs(absl::StatusCode::kInvalidArgument, "not a power of two"));
      EXPECT_FALSE(ranges.TryAllocate(Bytes(size), Bytes(alignment)));
    }
  }
  EXPECT_TRUE(ranges.empty());
}

TEST(RangeAllocatorTest, SizesNearTheEndOf64BitsDoNotWrap) {
  for (const uint64_t granularity : {uint64_t{1}, uint64_t{256}, uint64_t{1} << 63}) {
    RangeAllocator ranges({.size = MiB(1), .granularity = Bytes(granularity)});
    for (const uint64_t size : {kMax, kMax - 1, kMax - 512, kMax / 2 + 1, uint64_t{1} << 63}) {
      for (const uint64_t alignment : {uint64_t{1}, uint64_t{4096}, uint64_t{1} << 63}) {
        EXPECT_THAT(ranges.Allocate(Bytes(size), Bytes(alignment)), StatusIs(kExhausted, ""));
      }
    }
    EXPECT_EQ(ranges.Stats().allocated, Bytes(0));
  }
}

TEST(RangeAllocatorTest, AllOf64BitsCanBeHandedOut) {
  RangeAllocator ranges({.size = Bytes(kMax), .granularity = Bytes(1)});
  const AllocatedRange small = MustAllocate(ranges, Bytes(1));
  EXPECT_THAT(ranges.Allocate(Bytes(kMax)), StatusIs(kExhausted, ""));
  // Size and padding together pass 2^64.
  EXPECT_THAT(ranges.Allocate(Bytes(kMax / 2 + 2), Bytes(uint64_t{1} << 63)),
              StatusIs(kExhausted, ""));
  const AllocatedRange half = MustAllocate(ranges, Bytes(1), Bytes(uint64_t{1} << 63));
  EXPECT_EQ(half.offset, Bytes(uint64_t{1} << 63));
  EXPECT_THAT(ranges.Allocate(Bytes(1), Bytes(uint64_t{1} << 63)), StatusIs(kExhausted, ""));
  const AllocatedRange rest = MustAllocate(ranges, Bytes(kMax - half.offset.count() - 1));
  EXPECT_EQ(rest.offset + Bytes(kMax - half.offset.count() - 1), Bytes(kMax));
  for (const RangeHandle handle : {half.handle, small.handle, rest.handle}) {
    EXPECT_THAT(ranges.Free(handle), IsOk());
  }
  EXPECT_EQ(ranges.Stats().largest_free, Bytes(kMax));
  EXPECT_EQ(MustAllocate(ranges, Bytes(kMax)).offset, Bytes(0));
}

TEST(RangeAllocatorTest, AnEmptyRequestTakesNothingAndIsFreedOnce) {
  RangeAllocator ranges({.size = Bytes(64)});
  const AllocatedRange all = MustAllocate(ranges, Bytes(64));
  const AllocatedRange empty = MustAllocate(ranges, Bytes(0), KiB(4));
  const AllocatedRange other = MustAllocate(ranges, Bytes(0));
  EXPECT_EQ(ranges.SizeOf(empty.handle).value(), Bytes(0));
  EXPECT_EQ(ranges.Stats().allocations, 3u);
  ASSERT_THAT(ranges.Free(empty.handle), IsOk());
  EXPECT_THAT(ranges.Free(empty.handle), StatusIs(kNotFound, "freed before"));
  ASSERT_THAT(ranges.Free(all.handle), IsOk());
  EXPECT_FALSE(ranges.empty());
  ASSERT_THAT(ranges.Free(other.handle), IsOk());
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.Stats().free_ranges, 1u);
}

TEST(RangeAllocatorTest, NothingFitsIntoNothing) {
  RangeAllocator ranges({.size = Bytes(63), .granularity = Bytes(64)});
  EXPECT_EQ(ranges.Stats().size, Bytes(0));
  EXPECT_EQ(ranges.Stats().largest_free, Bytes(0));
  EXPECT_THAT(ranges.Allocate(Bytes(1)), StatusIs(kExhausted, "0 of 0 bytes"));
  EXPECT_THAT(ranges.Allocate(Bytes(0)), IsOk());
}

TEST(RangeAllocatorTest, ASecondFreeIsFoundAndHarmless) {
  RangeAllocator ranges({.size = KiB(1)});
  const RangeHandle first = MustAllocate(ranges, Bytes(64)).handle;
  const RangeHandle second = MustAllocate(ranges, Bytes(64)).handle;
  ASSERT_THAT(ranges.Free(first), IsOk());
  EXPECT_THAT(ranges.Free(first), StatusIs(kNotFound, "freed before"));
  // The same bytes belong to somebody else now.
  const AllocatedRange third = MustAllocate(ranges, Bytes(64));
  EXPECT_EQ(third.offset, Bytes(0));
  EXPECT_THAT(ranges.Free(first), StatusIs(kNotFound, "freed before"));
  EXPECT_THAT(ranges.SizeOf(first), StatusIs(kNotFound, ""));
  EXPECT_EQ(ranges.Stats().allocated, Bytes(128));
  EXPECT_THAT(ranges.Free(third.handle), IsOk());
  EXPECT_THAT(ranges.Free(second), IsOk());
}

TEST(RangeAllocatorTest, AnotherAllocatorsHandleIsFoundAndHarmless) {
  RangeAllocator ranges({.size = KiB(1)});
  RangeAllocator other({.size = KiB(1)});
  const RangeHandle own = MustAllocate(ranges, Bytes(64)).handle;
  const RangeHandle foreign = MustAllocate(other, Bytes(64)).handle;
  EXPECT_EQ(own.slot, foreign.slot);
  EXPECT_THAT(ranges.Free(foreign), StatusIs(kNotFound, "another allocator's"));
  EXPECT_THAT(other.Free(own), StatusIs(kNotFound, "another allocator's"));
  EXPECT_THAT(ranges.Free(own), IsOk());
  EXPECT_THAT(other.Free(foreign), IsOk());
}

TEST(RangeAllocatorTest, HandlesThatNeverWereNameNothing) {
  RangeAllocator ranges({.size = KiB(1)});
  EXPECT_THAT(ranges.Free({}), StatusIs(kNotFound, ""));
  const RangeHandle handle = MustAllocate(ranges, Bytes(64)).handle;
  for (uint32_t slot = 0; slot < 200; ++slot) {
    EXPECT_THAT(ranges.Free({.serial = 0, .slot = slot}), StatusIs(kNotFound, ""));
    EXPECT_THAT(ranges.Free({.serial = handle.serial + 1, .slot = slot}), StatusIs(kNotFound, ""));
  }
  EXPECT_THAT(ranges.Free({.serial = handle.serial, .slot = std::numeric_limits<uint32_t>::max()}),
              StatusIs(kNotFound, ""));
  EXPECT_EQ(ranges.Stats().allocations, 1u);
  EXPECT_THAT(ranges.Free(handle), IsOk());
}

TEST(RangeAllocatorTest, AMadeUpHandleDoesNotReachWhatLiesAroundAllRanges) {
  RangeAllocator ranges({.size = KiB(1)});
  const RangeHandle handle = MustAllocate(ranges, Bytes(64)).handle;
  const RangeHandle wall{.serial = uint64_t{1} << 63, .slot = 0};
  EXPECT_THAT(ranges.SizeOf(wall), StatusIs(kNotFound, ""));
  EXPECT_THAT(ranges.Free(wall), StatusIs(kNotFound, ""));
  EXPECT_EQ(ranges.Stats().allocations, 1u);
  EXPECT_EQ(ranges.Stats().free_ranges, 1u);
  EXPECT_THAT(ranges.Free(handle), IsOk());
}

TEST(RangeAllocatorTest, SaysWhyThereIsNoRoom) {
  RangeAllocator ranges({.size = KiB(1)});
  std::vector<RangeHandle> handles;
  for (int i = 0; i < 8; ++i) handles.push_back(MustAllocate(ranges, Bytes(128)).handle);
  for (size_t i = 0; i < 8; i += 2) ASSERT_THAT(ranges.Free(handles[i]), IsOk());
  EXPECT_THAT(ranges.Allocate(Bytes(129)),
              StatusIs(kExhausted,
                       "129 bytes aligned to 1: 512 of 1024 bytes are free, at most "
                       "128 in a row"));
}

TEST(RangeAllocatorTest, ThePeakStays) {
  RangeAllocator ranges({.size = KiB(1)});
  const RangeHandle first = MustAllocate(ranges, Bytes(500)).handle;
  ASSERT_THAT(ranges.Free(first), IsOk());
  MustAllocate(ranges, Bytes(64));
  EXPECT_EQ(ranges.Stats().peak_allocated, Bytes(512));
  EXPECT_EQ(ranges.Stats().allocated, Bytes(64));
  EXPECT_EQ(ranges.Stats().free, Bytes(960));
}

TEST(RangeAllocatorTest, AMovedOneGoesOnAsTheSame) {
  RangeAllocator ranges({.size = KiB(1)});
  const RangeHandle handle = MustAllocate(ranges, Bytes(64)).handle;
  RangeAllocator moved = std::move(ranges);
  EXPECT_THAT(moved.Free(handle), IsOk());
  EXPECT_TRUE(moved.empty());
}

TEST(RangeAllocatorDeathTest, OptionsThatContradictThemselvesCrash) {
  EXPECT_DEATH(RangeAllocator({.size = KiB(1), .granularity = Bytes(48)}), "");
  EXPECT_DEATH(RangeAllocator({.size = KiB(1), .granularity = Bytes(64), .base_address = 32}), "");
}

TEST(RangeAllocatorTest, AnAllocatorTakesFewNumbersForItsHandles) {
  // A process makes any number of them, one for each block that it ever leases.
  RangeAllocator first({.size = KiB(1)});
  RangeAllocator second({.size = KiB(1)});
  const uint64_t number = MustAllocate(first, Bytes(1)).handle.serial;
  EXPECT_LE(MustAllocate(second, Bytes(1)).handle.serial - number, SerialNumbers::kAtOnce);
}

TEST(RangeAllocatorTest, HandlesDifferWhenTheNumbersOfSeveralAllocatorsRunOut) {
  constexpr uint64_t kMany = 3 * SerialNumbers::kAtOnce;
  RangeAllocator first({.size = KiB(1)});
  RangeAllocator second({.size = KiB(1)});
  std::set<uint64_t> serials;
  for (uint64_t i = 0; i < kMany; ++i) {
    for (RangeAllocator* const ranges : {&first, &second}) {
      const RangeHandle handle = MustAllocate(*ranges, Bytes(1)).handle;
      serials.insert(handle.serial);
      ASSERT_THAT(ranges->Free(handle), IsOk());
    }
  }
  EXPECT_EQ(serials.size(), 2 * kMany);
}

TEST(SerialNumbersTest, EndWithTheLastOneAndNeverBeginAgain) {
  SerialNumbers numbers(0 - 2 * SerialNumbers::kAtOnce);
  EXPECT_EQ(numbers.Take(), 0 - 2 * SerialNumbers::kAtOnce);
  EXPECT_EQ(numbers.Take(), 0 - SerialNumbers::kAtOnce);
  EXPECT_EQ(numbers.Take(), 0u);
  EXPECT_EQ(numbers.Take(), 0u);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/arena.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(ArenaTest, HandsOutAlignedRangesFromFrontToBack) {
  Arena arena(Bytes(100));
  EXPECT_EQ(arena.Allocate(Bytes(10), Bytes(1)).value(), Bytes(0));
  EXPECT_EQ(arena.Allocate(Bytes(10), Bytes(16)).value(), Bytes(16));
  EXPECT_EQ(arena.used(), Bytes(26));
  EXPECT_EQ(arena.Allocate(Bytes(36), Bytes(64)).value(), Bytes(64));
  EXPECT_EQ(arena.used(), Bytes(100));
}

TEST(ArenaTest, RefusesAlignmentsThatAreNoPowerOfTwo) {
  Arena arena(Bytes(100));
  for (const uint64_t alignment : {uint64_t{0}, uint64_t{3}, uint64_t{48}, kMax}) {
    EXPECT_THAT(arena.Allocate(Bytes(1), Bytes(alignment)),
                StatusIs(absl::StatusCode::kInvalidArgument, "not a power of two"));
    EXPECT_THAT(arena.Allocate(Bytes(0), Bytes(alignment)),
                StatusIs(absl::StatusCode::kInvalidArgument, "not a power of two"));
  }
}

TEST(ArenaTest, ARefusedRequestChangesNothing) {
  Arena arena(Bytes(100));
  ASSERT_THAT(arena.Allocate(Bytes(33), Bytes(1)), IsOk());
  EXPECT_THAT(arena.Allocate(Bytes(60), Bytes(64)),
              StatusIs(absl::StatusCode::kResourceExhausted, "33 of 100 bytes are used"));
  EXPECT_EQ(arena.used(), Bytes(33));
  EXPECT_EQ(arena.Allocate(Bytes(67), Bytes(1)).value(), Bytes(33));
}

TEST(ArenaTest, SizesNearTheEndOf64BitsDoNotWrap) {
  Arena arena(Bytes(100));
  ASSERT_THAT(arena.Allocate(Bytes(1), Bytes(1)), IsOk());
  for (const uint64_t size : {kMax, kMax - 1, kMax - 512, kMax / 2 + 1, uint64_t{1} << 63}) {
    for (const uint64_t alignment : {uint64_t{1}, uint64_t{4096}, uint64_t{1} << 63}) {
      EXPECT_THAT(arena.Allocate(Bytes(size), Bytes(alignment)),
                  StatusIs(absl::StatusCode::kResourceExhausted, "no room"));
    }
  }
  EXPECT_EQ(arena.used(), Bytes(1));
}

TEST(ArenaTest, AnEmptyRequestTakesNothingEvenWhenFull) {
  Arena arena(Bytes(10));
  ASSERT_THAT(arena.Allocate(Bytes(9), Bytes(1)), IsOk());
  const absl::StatusOr<Bytes> empty = arena.Allocate(Bytes(0), Bytes(4096));
  ASSERT_THAT(empty, IsOk());
  EXPECT_EQ(*empty, Bytes(0));
  ASSERT_THAT(arena.Allocate(Bytes(1), Bytes(1)), IsOk());
  EXPECT_EQ(arena.Allocate(Bytes(0), Bytes(1)).value(), Bytes(10));
  EXPECT_EQ(arena.used(), Bytes(10));
}

TEST(ArenaTest, ItIsTheAddressThatIsAligned) {
  // As a mapping that begins 16 bytes before a multiple of 4096.
  Arena arena(Bytes(10'000), 0x7f0000000ff0);
  EXPECT_EQ(arena.Allocate(Bytes(1), Bytes(16)).value(), Bytes(0));
  EXPECT_EQ(arena.Allocate(Bytes(1), Bytes(4096)).value(), Bytes(16));
  EXPECT_EQ(arena.Allocate(Bytes(1), Bytes(256)).value(), Bytes(16 + 256));
  EXPECT_EQ(arena.Allocate(Bytes(1), Bytes(8192)).value(), Bytes(16 + 4096));
  EXPECT_THAT(arena.Allocate(Bytes(1), Bytes(uint64_t{1} << 63)),
              StatusIs(absl::StatusCode::kResourceExhausted, "no room"));
}

TEST(ArenaTest, AnEmptyRequestHasAnAlignedAddressIfTheArenaHasOne) {
  Arena arena(Bytes(4096), 0x7f0000000ff0);
  ASSERT_THAT(arena.Allocate(Bytes(4096), Bytes(1)), IsOk());
  EXPECT_EQ(arena.Allocate(Bytes(0), Bytes(4096)).value(), Bytes(16));
  EXPECT_EQ(arena.Allocate(Bytes(0), Bytes(8192)).value(), Bytes(0));
}

TEST(ArenaTest, ResetGivesEverythingBack) {
  Arena arena(Bytes(100));
  ASSERT_THAT(arena.Allocate(Bytes(80), Bytes(1)), IsOk());
  arena.Reset();
  EXPECT_EQ(arena.used(), Bytes(0));
  EXPECT_EQ(arena.Allocate(Bytes(100), Bytes(1)).value(), Bytes(0));
}

TEST(ArenaTest, AnArenaOfNothingHasRoomForNothing) {
  Arena arena{Bytes(0)};
  EXPECT_THAT(arena.Allocate(Bytes(0), Bytes(1)), IsOk());
  EXPECT_THAT(arena.Allocate(Bytes(1), Bytes(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "0 of 0 bytes"));
}

}  // namespace
}  // namespace heapbroker

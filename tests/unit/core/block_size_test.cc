// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/block_size.h"

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr Bytes kLargest = GiB(8);

TEST(BlockSizeTest, RoundsToEightStepsPerPowerOfTwo) {
  EXPECT_EQ(RoundedBlockSize(MiB(1), kLargest), MiB(1));
  EXPECT_EQ(RoundedBlockSize(MiB(1) + Bytes(1), kLargest), MiB(1) + KiB(128));
  EXPECT_EQ(RoundedBlockSize(MiB(1) + KiB(128), kLargest), MiB(1) + KiB(128));
  EXPECT_EQ(RoundedBlockSize(MiB(2) - Bytes(1), kLargest), MiB(2));
  EXPECT_EQ(RoundedBlockSize(KiB(65), kLargest), KiB(72));
}

TEST(BlockSizeTest, IsNeverUnder64KiB) {
  EXPECT_EQ(RoundedBlockSize(Bytes(1), kLargest), KiB(64));
  EXPECT_EQ(RoundedBlockSize(KiB(64), kLargest), KiB(64));
}

TEST(BlockSizeTest, RoundsToTwoMiBOverOneGiB) {
  EXPECT_EQ(RoundedBlockSize(GiB(1), kLargest), GiB(1));
  EXPECT_EQ(RoundedBlockSize(GiB(1) + Bytes(1), kLargest), GiB(1) + MiB(2));
}

TEST(BlockSizeTest, TakesTheExactSizeWhereRoundingPassesTheLargest) {
  const Bytes odd = GiB(2) - Bytes(5);
  EXPECT_EQ(RoundedBlockSize(odd, GiB(2) - Bytes(1)), odd);
  EXPECT_EQ(RoundedBlockSize(odd, GiB(2)), GiB(2));
}

TEST(BlockSizeTest, WastesAtMostAnEighth) {
  for (uint64_t size = 65536; size < (uint64_t{1} << 33); size += size / 7 + 1) {
    const Bytes rounded = RoundedBlockSize(Bytes(size), kLargest);
    EXPECT_GE(rounded, Bytes(size));
    EXPECT_LE(rounded.count() - size, size / 8) << size;
  }
}

TEST(BlockSizeTest, DoesNotWrapNearTheEndOfTheRange) {
  for (uint64_t below : {0u, 1u, 512u, 513u}) {
    const Bytes size = Bytes::Max() - Bytes(below);
    EXPECT_EQ(RoundedBlockSize(size, Bytes::Max()), size);
    EXPECT_GE(LargestAcceptableBlock(size, Bytes::Max()), size);
  }
}

TEST(BlockSizeTest, AcceptsWhatANewBlockWouldGetOrAnEighthMore) {
  EXPECT_EQ(LargestAcceptableBlock(Bytes(1), kLargest), KiB(64));
  EXPECT_EQ(LargestAcceptableBlock(MiB(8), kLargest), MiB(9));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/block_size.h"

#include <algorithm>
#include <vector>

#include "absl/numeric/int128.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr Bytes kLargest = GiB(8);
constexpr MatchingPolicy kBestFit;
constexpr MatchingPolicy kExact{Matching::kExact, 125};

Bytes Rounded(Bytes size, Bytes largest = kLargest) {
  return NewBlockSize(kBestFit, size, largest);
}

// Where sums wrap: row S12 of the faults that this project looks for.
std::vector<Bytes> HugeSizes() {
  std::vector<Bytes> sizes;
  for (uint64_t below = 0; below <= 513; ++below) sizes.push_back(Bytes::Max() - Bytes(below));
  const uint64_t half = uint64_t{1} << 63;
  for (uint64_t size : {half - 1, half, half + 1, half + half / 2, half / 8 * 15}) {
    sizes.push_back(Bytes(size));
  }
  return sizes;
}

TEST(BlockSizeTest, RoundsToEightStepsPerPowerOfTwo) {
  EXPECT_EQ(Rounded(MiB(1)), MiB(1));
  EXPECT_EQ(Rounded(MiB(1) + Bytes(1)), MiB(1) + KiB(128));
  EXPECT_EQ(Rounded(MiB(1) + KiB(128)), MiB(1) + KiB(128));
  EXPECT_EQ(Rounded(MiB(2) - Bytes(1)), MiB(2));
  EXPECT_EQ(Rounded(KiB(65)), KiB(72));
}

TEST(BlockSizeTest, IsNeverUnder64KiB) {
  EXPECT_EQ(Rounded(Bytes(0)), KiB(64));
  EXPECT_EQ(Rounded(Bytes(1)), KiB(64));
  EXPECT_EQ(Rounded(KiB(64)), KiB(64));
}

TEST(BlockSizeTest, RoundsToTwoMiBOverOneGiB) {
  EXPECT_EQ(Rounded(GiB(1)), GiB(1));
  EXPECT_EQ(Rounded(GiB(1) + Bytes(1)), GiB(1) + MiB(2));
}

TEST(BlockSizeTest, TakesTheExactSizeWhereRoundingPassesTheLargest) {
  const Bytes odd = GiB(2) - Bytes(5);
  EXPECT_EQ(Rounded(odd, GiB(2) - Bytes(1)), odd);
  EXPECT_EQ(Rounded(odd, GiB(2)), GiB(2));
  EXPECT_EQ(Rounded(Bytes(1), KiB(63)), Bytes(1));
}

TEST(BlockSizeTest, WastesAtMostAnEighth) {
  for (uint64_t size = 65536; size < (uint64_t{1} << 33); size += size / 7 + 1) {
    const Bytes rounded = Rounded(Bytes(size));
    EXPECT_GE(rounded, Bytes(size));
    EXPECT_LE(rounded.count() - size, size / 8) << size;
  }
}

TEST(BlockSizeTest, NeverShrinksARequestNearTheEndOfTheRange) {
  for (const Bytes size : HugeSizes()) {
    for (const Bytes largest : {Bytes(0), GiB(4), size, Bytes::Max()}) {
      const Bytes rounded = Rounded(size, largest);
      EXPECT_GE(rounded, size);
      if (rounded != size) EXPECT_LE(rounded, largest) << size;
      EXPECT_EQ(NewBlockSize(kExact, size, largest), size);
    }
  }
}

TEST(BlockSizeTest, AcceptsNothingSmallerThanARequestNearTheEndOfTheRange) {
  for (const Bytes size : HugeSizes()) {
    for (uint32_t slack : {0u, 1u, 125u, 1000u, UINT32_MAX}) {
      const SizeRange range = AcceptableBlocks({Matching::kBestFit, slack}, size, Bytes::Max());
      EXPECT_EQ(range.smallest, size);
      EXPECT_GE(range.largest, Rounded(size, Bytes::Max())) << size << ", " << slack;
      EXPECT_EQ(AcceptableBlocks({Matching::kExact, slack}, size, Bytes::Max()),
                (SizeRange{size, size}));
    }
  }
}

TEST(BlockSizeTest, AcceptsWhatANewBlockWouldGetOrAnEighthMore) {
  EXPECT_EQ(AcceptableBlocks(kBestFit, Bytes(1), kLargest), (SizeRange{Bytes(1), KiB(64)}));
  EXPECT_EQ(AcceptableBlocks(kBestFit, MiB(8), kLargest), (SizeRange{MiB(8), MiB(9)}));
  EXPECT_EQ(AcceptableBlocks(kBestFit, MiB(1) + Bytes(8), kLargest).largest,
            MiB(1) + KiB(128) + Bytes(9));
}

TEST(BlockSizeTest, SlackIsCountedInThousandthsOfTheRequest) {
  EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, 500}, MiB(8), kLargest).largest, MiB(12));
  EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, 2000}, MiB(8), kLargest).largest, MiB(24));
  EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, 1}, Bytes(1999999), kLargest).largest,
            Rounded(Bytes(1999999)));
  EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, 999}, Bytes(9999999), kLargest).largest,
            Bytes(9999999 + 9989999));
}

TEST(BlockSizeTest, WithoutSlackAcceptsWhatANewBlockWouldGet) {
  EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, 0}, MiB(8), kLargest),
            (SizeRange{MiB(8), MiB(8)}));
  EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, 0}, MiB(8) + Bytes(1), kLargest).largest, MiB(9));
}

TEST(BlockSizeTest, SlackEndsWhereTheRangeOfSizesDoes) {
  std::vector<Bytes> sizes = HugeSizes();
  // The largest slack of its whole thousands is 2^64 - 1 to the byte.
  sizes.push_back(Bytes(4294967297999));
  for (int shift = 17; shift < 63; ++shift) sizes.push_back(Bytes((uint64_t{1} << shift) + 12345));
  for (const Bytes size : sizes) {
    for (uint32_t slack : {0u, 1u, 125u, 999u, 1000u, 1001u, UINT32_MAX}) {
      const absl::uint128 wide = size.count() + absl::uint128(size.count()) * slack / 1000;
      const Bytes with_slack(static_cast<uint64_t>(std::min<absl::uint128>(wide, UINT64_MAX)));
      // `size` as the largest: what a new block would get is then no more.
      EXPECT_EQ(AcceptableBlocks({Matching::kBestFit, slack}, size, size).largest, with_slack)
          << size << ", " << slack;
    }
  }
}

TEST(BlockSizeTest, ExactMatchingNeitherRoundsNorAcceptsAnythingElse) {
  for (const Bytes size : {Bytes(1), KiB(65), MiB(8) + Bytes(1), GiB(3) + Bytes(7)}) {
    EXPECT_EQ(NewBlockSize(kExact, size, kLargest), size);
    EXPECT_EQ(AcceptableBlocks(kExact, size, kLargest), (SizeRange{size, size}));
  }
}

}  // namespace
}  // namespace heapbroker

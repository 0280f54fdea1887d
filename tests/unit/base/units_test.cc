// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/units.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(BytesTest, CountsInPowersOf1024) {
  EXPECT_EQ(KiB(1), Bytes(1024));
  EXPECT_EQ(MiB(3), KiB(3 * 1024));
  EXPECT_EQ(GiB(2), MiB(2 * 1024));
}

TEST(BytesTest, SumsThatWouldWrapAreEmpty) {
  EXPECT_EQ(CheckedAdd(Bytes(1), Bytes(2)), Bytes(3));
  EXPECT_EQ(CheckedAdd(Bytes::Max(), Bytes(0)), Bytes::Max());
  EXPECT_EQ(CheckedAdd(Bytes(0), Bytes::Max()), Bytes::Max());
  EXPECT_EQ(CheckedAdd(Bytes::Max(), Bytes(1)), std::nullopt);
  EXPECT_EQ(CheckedAdd(Bytes(uint64_t{1} << 63), Bytes(uint64_t{1} << 63)), std::nullopt);
}

TEST(BytesTest, AlignUpRoundsToTheNextMultiple) {
  EXPECT_EQ(AlignUp(Bytes(0), Bytes(64)), Bytes(0));
  EXPECT_EQ(AlignUp(Bytes(1), Bytes(64)), Bytes(64));
  EXPECT_EQ(AlignUp(Bytes(64), Bytes(64)), Bytes(64));
  EXPECT_EQ(AlignUp(Bytes(65), Bytes(64)), Bytes(128));
  EXPECT_EQ(AlignUp(Bytes(7), Bytes(1)), Bytes(7));
}

TEST(BytesTest, AlignUpIsEmptyWhereItWouldWrap) {
  EXPECT_EQ(AlignUp(Bytes::Max(), Bytes(1)), Bytes::Max());
  EXPECT_EQ(AlignUp(Bytes::Max(), Bytes(2)), std::nullopt);
  for (uint64_t below = 1; below < 512; below += 51) {
    EXPECT_EQ(AlignUp(Bytes::Max() - Bytes(below - 1), Bytes(4096)), std::nullopt) << below;
  }
  const Bytes last_page = Bytes::Max() - Bytes(4095);
  EXPECT_EQ(AlignUp(last_page, Bytes(4096)), last_page);
}

TEST(BytesTest, OnlySingleBitsArePowersOfTwo) {
  EXPECT_FALSE(IsPowerOfTwo(0));
  EXPECT_TRUE(IsPowerOfTwo(1));
  EXPECT_FALSE(IsPowerOfTwo(3));
  EXPECT_FALSE(IsPowerOfTwo(48));
  EXPECT_TRUE(IsPowerOfTwo(uint64_t{1} << 63));
  EXPECT_FALSE(IsPowerOfTwo(~uint64_t{0}));
}

TEST(BytesTest, AreShownInTheLargestUnitThatHoldsOne) {
  EXPECT_EQ(FormatBytes(Bytes(0)), "0 B");
  EXPECT_EQ(FormatBytes(Bytes(1023)), "1023 B");
  EXPECT_EQ(FormatBytes(KiB(1)), "1.0 KiB");
  EXPECT_EQ(FormatBytes(KiB(64)), "64.0 KiB");
  EXPECT_EQ(FormatBytes(Bytes(942246298)), "898.6 MiB");
  EXPECT_EQ(FormatBytes(GiB(3)), "3.0 GiB");
}

TEST(BytesTest, AreNeverShownAs1024OfAUnit) {
  EXPECT_EQ(FormatBytes(MiB(1) - Bytes(1)), "1.0 MiB");
  EXPECT_EQ(FormatBytes(GiB(1) - Bytes(1)), "1.0 GiB");
}

TEST(BytesTest, TheLargestNumberCanBeShown) { EXPECT_EQ(FormatBytes(Bytes::Max()), "16.0 EiB"); }

}  // namespace
}  // namespace heapbroker

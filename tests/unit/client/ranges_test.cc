// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/ranges.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

BlockRun RunOf(const std::vector<Bytes>& sizes) { return BlockRun::Of(sizes).value(); }

TEST(RangesTest, ARangeMayEndExactlyAtTheEnd) {
  EXPECT_THAT(CheckRange("x", Bytes(0), Bytes(10), Bytes(10)), IsOk());
  EXPECT_THAT(CheckRange("x", Bytes(10), Bytes(0), Bytes(10)), IsOk());
  EXPECT_THAT(CheckRange("x", Bytes(0), Bytes(0), Bytes(0)), IsOk());
}

TEST(RangesTest, ARangePastTheEndIsOutOfRange) {
  EXPECT_THAT(CheckRange("memory id 3", Bytes(1), Bytes(10), Bytes(10)),
              StatusIs(absl::StatusCode::kOutOfRange, "memory id 3"));
  EXPECT_THAT(CheckRange("x", Bytes(11), Bytes(0), Bytes(10)),
              StatusIs(absl::StatusCode::kOutOfRange, "past the end at 10"));
}

TEST(RangesTest, ASumThatWrapsIsInvalid) {
  EXPECT_THAT(CheckRange("x", Bytes(kMax), Bytes(1), Bytes(10)),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
  EXPECT_THAT(CheckRange("x", Bytes(2), Bytes(kMax - 1), Bytes(10)),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
}

TEST(BlockRunTest, FindsTheBlockThatHoldsARange) {
  const BlockRun run = RunOf({Bytes(10), Bytes(20), Bytes(5)});
  EXPECT_EQ(run.size(), Bytes(35));
  EXPECT_EQ(run.starts(), (std::vector<Bytes>{Bytes(0), Bytes(10), Bytes(30)}));
  const BlockRun::Piece piece = run.Locate(Bytes(12), Bytes(18)).value();
  EXPECT_EQ(piece.block, 1u);
  EXPECT_EQ(piece.offset, Bytes(2));
  EXPECT_EQ(piece.size, Bytes(18));
  EXPECT_EQ(run.Locate(Bytes(0), Bytes(10)).value().block, 0u);
  EXPECT_EQ(run.Locate(Bytes(30), Bytes(5)).value().block, 2u);
}

TEST(BlockRunTest, RefusesARangeAcrossTheStartOfABlock) {
  const BlockRun run = RunOf({Bytes(10), Bytes(20)});
  EXPECT_THAT(run.Locate(Bytes(9), Bytes(2)),
              StatusIs(absl::StatusCode::kInvalidArgument, "start of a block at 10"));
  EXPECT_THAT(run.Locate(Bytes(9), Bytes(22)), StatusIs(absl::StatusCode::kOutOfRange, "30"));
}

TEST(BlockRunTest, AllowsAnEmptyRangeAnywhereUpToTheEnd) {
  const BlockRun run = RunOf({Bytes(10), Bytes(20)});
  EXPECT_THAT(run.Locate(Bytes(10), Bytes(0)), IsOk());
  const BlockRun::Piece end = run.Locate(Bytes(30), Bytes(0)).value();
  EXPECT_EQ(end.block, 1u);
  EXPECT_EQ(end.offset, Bytes(20));
  EXPECT_THAT(RunOf({}).Locate(Bytes(0), Bytes(0)), IsOk());
  EXPECT_THAT(RunOf({}).Locate(Bytes(0), Bytes(1)), StatusIs(absl::StatusCode::kOutOfRange, ""));
}

TEST(BlockRunTest, SplitsARangeAtTheStartsOfBlocks) {
  const BlockRun run = RunOf({Bytes(10), Bytes(20), Bytes(5)});
  const std::vector<BlockRun::Piece> pieces = run.Split(Bytes(8), Bytes(24)).value();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].offset, Bytes(8));
  EXPECT_EQ(pieces[0].size, Bytes(2));
  EXPECT_EQ(pieces[1].offset, Bytes(0));
  EXPECT_EQ(pieces[1].size, Bytes(20));
  EXPECT_EQ(pieces[2].block, 2u);
  EXPECT_EQ(pieces[2].size, Bytes(2));
  EXPECT_TRUE(run.Split(Bytes(35), Bytes(0)).value().empty());
}

TEST(BlockRunTest, RefusesSizesThatWrap) {
  EXPECT_THAT(BlockRun::Of({Bytes(kMax), Bytes(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument, "2^64"));
}

}  // namespace
}  // namespace heapbroker

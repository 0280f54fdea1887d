// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/segment_claims.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SegmentClaims::Key kWeights(0, "weights");

TEST(SegmentClaimsTest, ACloseIsRepeatedAtOnceWhereNobodyHasTheSegment) {
  SegmentClaims claims;
  EXPECT_TRUE(claims.MayRepeatClose(kWeights, 1));
  claims.Add(kWeights);
  EXPECT_THAT(claims.Remove(kWeights), IsEmpty());
  EXPECT_TRUE(claims.MayRepeatClose(kWeights, 1));
}

TEST(SegmentClaimsTest, OthersKeepItUntilTheLastOfThemIsThrough) {
  SegmentClaims claims;
  claims.Add(kWeights);
  claims.Add(kWeights);
  EXPECT_FALSE(claims.MayRepeatClose(kWeights, 1));
  EXPECT_FALSE(claims.MayRepeatClose(kWeights, 2));
  EXPECT_THAT(claims.Remove(kWeights), IsEmpty());
  EXPECT_THAT(claims.Remove(kWeights), ElementsAre(1, 2));
  EXPECT_TRUE(claims.MayRepeatClose(kWeights, 1)) << "kept once";
}

TEST(SegmentClaimsTest, SegmentsOfOtherNamesAndDevicesAreOthers) {
  SegmentClaims claims;
  claims.Add(kWeights);
  EXPECT_TRUE(claims.MayRepeatClose({1, "weights"}, 1));
  EXPECT_TRUE(claims.MayRepeatClose({0, "other"}, 1));
}

}  // namespace
}  // namespace heapbroker

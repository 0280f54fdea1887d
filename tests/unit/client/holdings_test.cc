// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/holdings.h"

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(HoldingsTest, HasWhatWasAddedAndNotRemoved) {
  Holdings holdings;
  ASSERT_TRUE(holdings.AddLeases({{.block_id = 1}, {.block_id = 2}, {.block_id = 3}}));
  holdings.RemoveLease(2);
  holdings.RemoveLease(2);
  ASSERT_TRUE(holdings.AddSegment({.segment_id = 4, .name = "twice", .writer = true}));
  ASSERT_TRUE(holdings.AddSegment({.segment_id = 4, .name = "twice", .writer = true}));
  ASSERT_TRUE(holdings.AddSegment({.segment_id = 5, .name = "once"}));
  holdings.RemoveSegment(4);
  holdings.RemoveSegment(5);
  holdings.RemoveSegment(6);
  holdings.SealSegment(4);
  const Holdings::All all = holdings.Close();
  ASSERT_EQ(all.leases.size(), 2u);
  EXPECT_EQ(all.leases[0].block_id, 1u);
  EXPECT_EQ(all.leases[1].block_id, 3u);
  ASSERT_EQ(all.segments.size(), 1u);
  EXPECT_EQ(all.segments[0].name, "twice");
  EXPECT_FALSE(all.segments[0].writer);
}

TEST(HoldingsTest, NothingIsAddedOnceItWasTold) {
  Holdings holdings;
  EXPECT_TRUE(holdings.Close().leases.empty());
  EXPECT_FALSE(holdings.AddLeases({{.block_id = 1}}));
  EXPECT_FALSE(holdings.AddSegment({.segment_id = 2}));
  const Holdings::All all = holdings.Close();
  EXPECT_TRUE(all.leases.empty());
  EXPECT_TRUE(all.segments.empty());
}

}  // namespace
}  // namespace heapbroker

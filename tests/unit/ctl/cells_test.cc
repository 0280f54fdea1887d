// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/cells.h"

#include <gtest/gtest.h>

#include <limits>

namespace heapbroker {
namespace {

TEST(FormatAgeTest, UsesTheTwoLargestUnits) {
  EXPECT_EQ(FormatAge(absl::Seconds(-5)), "0 s");
  EXPECT_EQ(FormatAge(absl::Seconds(59)), "59 s");
  EXPECT_EQ(FormatAge(absl::Seconds(60)), "1 min 0 s");
  EXPECT_EQ(FormatAge(absl::Minutes(60 * 5 + 2)), "5 h 2 min");
  EXPECT_EQ(FormatAge(absl::Hours(76)), "3 d 4 h");
}

TEST(FormatRateTest, NothingOfNothingIsNoRate) {
  EXPECT_EQ(FormatRate(0, 0), "-");
  EXPECT_EQ(FormatRate(12, 13), "92.3 %");
}

TEST(CellsTest, NoLimitIsADash) {
  EXPECT_EQ(SizeLimit(std::numeric_limits<uint64_t>::max()), "-");
  EXPECT_EQ(SizeLimit(1 << 20), "1.0 MiB");
  EXPECT_EQ(NumberLimit(std::numeric_limits<uint64_t>::max()), "-");
  EXPECT_EQ(NumberLimit(0), "0");
}

TEST(CellsTest, MemoryPropertiesHaveTheNamesOfPools) {
  EXPECT_EQ(MemoryPropertyNames(0), "-");
  EXPECT_EQ(MemoryPropertyNames(0xf), "device_local|host_visible|host_coherent|host_cached");
}

TEST(CellsTest, WhatANewerDaemonSaysHasANumberOrIsUnknown) {
  EXPECT_EQ(LimitName(static_cast<v1::MemoryRefusal::Limit>(99)), "limit 99");
  EXPECT_EQ(HandleTypeName(static_cast<v1::HandleType>(99)), "unknown");
}

TEST(CellsTest, ALongPoolKeepsBothEndsOfItsName) {
  EXPECT_EQ(PoolCell("device_local (type 1)"), "device_local (type 1)");
  EXPECT_EQ(PoolCell("host_visible|host_cached (type 2) #2"), "host_visib…(type 2) #2");
}

}  // namespace
}  // namespace heapbroker

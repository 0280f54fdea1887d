// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/block_steps.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;

constexpr BlockStepLimits kLimits{.smallest = MiB(4), .largest = MiB(64)};

TEST(BlockStepsTest, EachBlockIsAsLargeAsAllBeforeItWithinTheLimits) {
  Bytes leased;
  std::vector<Bytes> taken;
  for (int i = 0; i < 7; ++i) {
    taken.push_back(BlockSteps(kLimits, leased, Bytes(256)).front());
    leased += taken.back();
  }
  EXPECT_THAT(taken, ElementsAre(MiB(4), MiB(4), MiB(8), MiB(16), MiB(32), MiB(64), MiB(64)));
}

TEST(BlockStepsTest, HalvesDownToWhatIsNeeded) {
  EXPECT_THAT(BlockSteps(kLimits, MiB(70), MiB(5)),
              ElementsAre(MiB(64), MiB(32), MiB(16), MiB(8), MiB(5)));
  EXPECT_THAT(BlockSteps(kLimits, Bytes(0), MiB(3)), ElementsAre(MiB(4), MiB(3)));
}

TEST(BlockStepsTest, WhatIsLargerThanItsStepGetsItsOwnSize) {
  EXPECT_THAT(BlockSteps(kLimits, Bytes(0), MiB(4)), ElementsAre(MiB(4)));
  EXPECT_THAT(BlockSteps(kLimits, Bytes(0), MiB(100)), ElementsAre(MiB(100)));
}

TEST(BlockStepsTest, StepsKeepToTheLargestAllocationOfTheDevice) {
  BlockStepLimits limits = kLimits;
  limits.max_allocation = MiB(20);
  EXPECT_THAT(BlockSteps(limits, MiB(64), MiB(12)), ElementsAre(MiB(20), MiB(12)));
  EXPECT_THAT(BlockSteps(limits, MiB(64), MiB(30)), ElementsAre(MiB(30)));
}

}  // namespace
}  // namespace heapbroker

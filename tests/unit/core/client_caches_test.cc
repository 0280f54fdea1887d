// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/client_caches.h"

#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr SessionId kOne{1}, kTwo{2}, kThree{3};
constexpr absl::Time kNow = absl::UnixEpoch();
constexpr absl::Duration kHalf = absl::Milliseconds(500);

class ClientCachesTest : public ::testing::Test {
 protected:
  void Report(SessionId session, Bytes bytes) { caches_.Report(session, {IdleReport{0, bytes}}); }
  using Asks = std::vector<std::pair<SessionId, Bytes>>;
  Asks Choose(Bytes bytes, absl::Time now = kNow) {
    Asks asks;
    for (const auto& ask : caches_.ChooseWhomToAsk(0, bytes, now, now + kHalf)) {
      asks.emplace_back(ask.session, ask.bytes);
    }
    return asks;
  }

  ClientCaches caches_{2};
};

TEST_F(ClientCachesTest, AReportReplacesTheOneBeforeIt) {
  caches_.Report(kOne, {IdleReport{0, MiB(4)}, IdleReport{1, MiB(8)}});
  EXPECT_EQ(caches_.on(0), MiB(4));
  EXPECT_EQ(caches_.on(1), MiB(8));
  Report(kOne, MiB(2));
  EXPECT_EQ(caches_.on(0), MiB(2));
  EXPECT_EQ(caches_.on(1), Bytes()) << "a heap that is not named has nothing";
}

TEST_F(ClientCachesTest, SumsSessionsAndForgetsThem) {
  Report(kOne, MiB(4));
  Report(kTwo, MiB(8));
  EXPECT_EQ(caches_.on(0), MiB(12));
  caches_.Forget(kTwo);
  caches_.Forget(kTwo);
  EXPECT_EQ(caches_.on(0), MiB(4));
}

TEST_F(ClientCachesTest, ACapOnlyLowers) {
  Report(kOne, MiB(4));
  caches_.Cap(kOne, 0, MiB(8));
  EXPECT_EQ(caches_.on(0), MiB(4));
  caches_.Cap(kOne, 0, MiB(1));
  EXPECT_EQ(caches_.on(0), MiB(1));
  caches_.Cap(kTwo, 0, Bytes());
  EXPECT_EQ(caches_.on(0), MiB(1));
}

TEST_F(ClientCachesTest, AsksThoseThatKeepMostFirstAndForNoMoreThanNeeded) {
  Report(kOne, MiB(4));
  Report(kTwo, MiB(16));
  Report(kThree, MiB(8));
  EXPECT_EQ(Choose(MiB(20)), (Asks{{kTwo, MiB(16)}, {kThree, MiB(4)}}));
}

TEST_F(ClientCachesTest, AsksForNothingTwiceWithinTheTime) {
  Report(kOne, MiB(4));
  Report(kTwo, MiB(16));
  EXPECT_EQ(caches_.NextAskable(kNow), absl::InfiniteFuture());
  EXPECT_EQ(Choose(MiB(10)), (Asks{{kTwo, MiB(10)}}));
  EXPECT_EQ(caches_.AskableOn(0, kNow), MiB(10));
  EXPECT_EQ(caches_.NextAskable(kNow), kNow + kHalf);
  EXPECT_EQ(Choose(MiB(8)), (Asks{{kTwo, MiB(6)}, {kOne, MiB(2)}})) << "the rest of it";
  EXPECT_EQ(Choose(MiB(10)), (Asks{{kOne, MiB(2)}}));
  EXPECT_EQ(caches_.AskableOn(0, kNow), Bytes());
  EXPECT_EQ(Choose(MiB(10)), Asks());
  EXPECT_EQ(caches_.AskableOn(0, kNow + kHalf), MiB(20));
  EXPECT_EQ(caches_.NextAskable(kNow + kHalf), absl::InfiniteFuture());
  EXPECT_EQ(Choose(MiB(10), kNow + kHalf), (Asks{{kTwo, MiB(10)}}));
}

TEST_F(ClientCachesTest, WhatASessionHasLessCountsAsGivenBack) {
  Report(kOne, MiB(8));
  EXPECT_EQ(Choose(MiB(3)), (Asks{{kOne, MiB(3)}}));
  Report(kOne, MiB(6));
  EXPECT_EQ(caches_.AskableOn(0, kNow), MiB(5)) << "it was asked for one more";
  caches_.Cap(kOne, 0, MiB(4));
  EXPECT_EQ(caches_.AskableOn(0, kNow), MiB(4));
  Report(kOne, MiB(5));
  EXPECT_EQ(caches_.AskableOn(0, kNow), MiB(5));
}

TEST_F(ClientCachesTest, ANewReportDoesNotMakeASessionAskedAgainForTheSame) {
  Report(kOne, MiB(4));
  EXPECT_EQ(Choose(MiB(4)), (Asks{{kOne, MiB(4)}}));
  Report(kOne, MiB(4));
  EXPECT_EQ(Choose(MiB(1)), Asks());
}

TEST_F(ClientCachesTest, AsksForNothingWhereNothingIsKept) {
  EXPECT_EQ(Choose(MiB(1)), Asks());
  EXPECT_EQ(caches_.AskableOn(1, kNow), Bytes());
}

}  // namespace
}  // namespace heapbroker

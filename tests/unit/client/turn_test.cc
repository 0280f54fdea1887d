// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/turn.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(TurnTest, OnlyOneThreadHasIt) {
  Turn turn;
  int unguarded = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        TurnHolder holder(turn);
        ++unguarded;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unguarded, 8000);
}

TEST(TurnTest, WaitingEndsWithItsTimeout) {
  Turn turn;
  TurnHolder first(turn);
  TurnHolder second(turn, absl::Milliseconds(1));
  EXPECT_TRUE(first.holds());
  EXPECT_FALSE(second.holds());
}

TEST(TurnTest, AHolderThatWaitedInVainGivesNothingAway) {
  Turn turn;
  ASSERT_TRUE(turn.Take());
  { TurnHolder in_vain(turn, absl::ZeroDuration()); }
  EXPECT_FALSE(turn.Take(absl::ZeroDuration()));
  turn.Give();
  EXPECT_TRUE(turn.Take(absl::ZeroDuration()));
}

}  // namespace
}  // namespace heapbroker

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

TEST(TurnTest, WaitingForCenturiesEndsWhenTheTurnIsGiven) {
  for (const absl::Duration far : {absl::Hours(24 * 365) * 10'000, absl::InfiniteDuration()}) {
    Turn turn;
    ASSERT_TRUE(turn.Take());
    std::atomic<bool> taken{false};
    std::thread waiting([&] { taken.store(turn.Take(far)); });
    // Another one that waits gets as far as this only where the first lets go of the lock.
    EXPECT_FALSE(turn.Take(absl::Milliseconds(20)));
    turn.Give();
    waiting.join();
    EXPECT_TRUE(taken.load());
  }
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

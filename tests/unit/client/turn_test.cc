// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/turn.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/process_facts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"

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
  TurnHolder second(turn, CallLimits(absl::Milliseconds(1)), "another one works");
  EXPECT_THAT(first.status(), IsOk());
  EXPECT_THAT(second.status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "another one works for 1ms"));
}

TEST(TurnTest, WaitingForCenturiesEndsWhenTheTurnIsGiven) {
  for (const absl::Duration far : {absl::Hours(24 * 365) * 10'000, absl::InfiniteDuration()}) {
    Turn turn;
    ASSERT_THAT(turn.Take(CallLimits(), ""), IsOk());
    absl::Status taken = absl::UnknownError("still waiting");
    std::thread waiting([&] { taken = turn.Take(CallLimits(far), ""); });
    // Another one that waits gets as far as this only where the first lets go of the lock.
    EXPECT_FALSE(turn.Take(CallLimits(absl::Milliseconds(20)), "").ok());
    turn.Give();
    waiting.join();
    EXPECT_THAT(taken, IsOk());
  }
}

TEST(TurnTest, AForkedChildCanDropOneThatThreadsOfItsParentWaitFor) {
  auto turn = std::make_unique<Turn>();
  ASSERT_THAT(turn->Take(CallLimits(), ""), IsOk());
  std::atomic<pid_t> thread = 0;
  std::thread waiting([&] {
    thread = gettid();
    TurnHolder holder(*turn);
  });
  ASSERT_TRUE(WaitFor([&] { return thread != 0 && Sleeps(thread).value_or(false); }));
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    turn.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  turn->Give();
  waiting.join();
}

TEST(TurnTest, AHolderThatWaitedInVainGivesNothingAway) {
  Turn turn;
  const CallLimits now_or_never(absl::ZeroDuration());
  ASSERT_THAT(turn.Take({}, ""), IsOk());
  { TurnHolder in_vain(turn, now_or_never, ""); }
  EXPECT_FALSE(turn.Take(now_or_never, "").ok());
  turn.Give();
  EXPECT_THAT(turn.Take(now_or_never, ""), IsOk());
}

TEST(TurnTest, WaitingEndsByCancellationAlsoIfThatCameFirst) {
  Turn turn;
  TurnHolder first(turn);
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] { cancellation->Cancel(); });
  const CallLimits limits(absl::InfiniteDuration(), cancellation);
  EXPECT_THAT(turn.Take(limits, "another one works"),
              StatusIs(absl::StatusCode::kCancelled, "cancelled while another one works"));
  canceller.join();
  EXPECT_THAT(turn.Take(limits, ""), StatusIs(absl::StatusCode::kCancelled, ""));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/recent_value.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace heapbroker {
namespace {

class RecentValueTest : public testing::Test {
 protected:
  FakeClock clock_;
  std::atomic<int> made_{0};
  RecentValue<int> value_{clock_, absl::Seconds(1), [this] { return ++made_; }};
};

TEST_F(RecentValueTest, IsMadeOnceForAllWhoAskWhileItIsRecent) {
  for (int i = 0; i < 250; ++i) EXPECT_EQ(value_.Get(), 1);
  clock_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(value_.Get(), 1);
}

TEST_F(RecentValueTest, IsMadeAnewWhenItIsTooOld) {
  EXPECT_EQ(value_.Get(), 1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(value_.Get(), 2);
  EXPECT_EQ(value_.Get(), 2);
}

TEST_F(RecentValueTest, IsMadeAnewWhenTheClockWasSetBack) {
  EXPECT_EQ(value_.Get(), 1);
  clock_.Advance(-absl::Hours(1));
  EXPECT_EQ(value_.Get(), 2);
  EXPECT_EQ(value_.Get(), 2);
}

TEST_F(RecentValueTest, IsMadeOnceForEachThreadAtMost) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 1000; ++round) value_.Get();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(made_.load(), 4);
}

}  // namespace
}  // namespace heapbroker

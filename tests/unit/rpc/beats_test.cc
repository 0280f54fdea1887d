// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/beats.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

class BeatsTest : public testing::Test {
 protected:
  BeatsTest() : thread_([this] { Run(); }) {}
  ~BeatsTest() override {
    beats_.Close();
    queue_.Shutdown();
    thread_.join();
  }

  void Run() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      ++wake_ups_;
      static_cast<QueueEvent*>(tag)->Complete(ok);
    }
  }

  grpc::CompletionQueue queue_;
  Beats beats_{queue_};
  std::atomic<int> wake_ups_{0};
  std::thread thread_;
};

TEST_F(BeatsTest, CallsAgainAndAgainAndNotBeforeTheFirstInterval) {
  const absl::Time begin = absl::Now();
  std::atomic<int> beats{0};
  std::atomic<int64_t> first_after_ms{0};
  beats_.Add(absl::Milliseconds(20), [&] {
    if (beats.fetch_add(1) == 0) first_after_ms = absl::ToInt64Milliseconds(absl::Now() - begin);
  });
  EXPECT_TRUE(WaitFor([&] { return beats.load() >= 5; }));
  EXPECT_GE(first_after_ms.load(), 19);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(99));
}

TEST_F(BeatsTest, AShortIntervalDoesNotWaitForALongOne) {
  std::atomic<int> beats{0};
  beats_.Add(absl::Hours(1), [] { ADD_FAILURE() << "an hour has not passed"; });
  beats_.Add(absl::Milliseconds(1), [&] { ++beats; });
  EXPECT_TRUE(WaitFor([&] { return beats.load() >= 2; }));
}

TEST_F(BeatsTest, NobodyIsCalledAfterTheyHaveLeftAndNothingWakesUp) {
  std::atomic<int> beats{0};
  const auto held = std::make_shared<int>(0);
  const uint64_t id = beats_.Add(absl::Milliseconds(1), [&beats, held] { ++beats; });
  EXPECT_TRUE(WaitFor([&] { return beats.load() >= 1; }));
  beats_.Remove(id);
  beats_.Remove(id);
  EXPECT_TRUE(WaitFor([&] { return held.use_count() == 1; }));
  const int beats_before = beats.load();
  // The alarm that was cancelled may still come back once.
  const int wake_ups_before = wake_ups_.load();
  EXPECT_FALSE(
      WaitFor([&] { return wake_ups_.load() > wake_ups_before + 1; }, absl::Milliseconds(50)));
  EXPECT_EQ(beats.load(), beats_before);
}

TEST_F(BeatsTest, CanBeAddedAndRemovedFromEverywhere) {
  std::atomic<int> beats{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        beats_.Remove(beats_.Add(absl::Microseconds(100 * (n % 3)), [&] { ++beats; }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  beats_.Add(absl::Milliseconds(1), [&] { beats = -1; });
  EXPECT_TRUE(WaitFor([&] { return beats.load() == -1; }));
}

TEST_F(BeatsTest, EndsThoughSomebodyIsStillThere) {
  beats_.Add(absl::Hours(1), [] {});
}

}  // namespace
}  // namespace heapbroker

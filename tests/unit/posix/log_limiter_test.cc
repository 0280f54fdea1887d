// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/log_limiter.h"

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using std::chrono::seconds;

class RecordingLogger final : public Logger {
 public:
  void Write(LogLevel, absl::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

class LogLimiterTest : public testing::Test {
 protected:
  void Write() { limiter_.Write(now_, LogLevel::kInfo, "x"); }

  RecordingLogger logger_;
  LogLimiter limiter_{logger_, 3, seconds(10)};
  LogLimiter::Clock::time_point now_{seconds(1000)};
};

TEST_F(LogLimiterTest, PassesABurstAndNoMore) {
  for (int i = 0; i < 100; ++i) Write();
  EXPECT_EQ(logger_.lines.size(), 3u);
}

TEST_F(LogLimiterTest, PassesOneMoreForEachInterval) {
  for (int i = 0; i < 100; ++i) Write();
  now_ += seconds(9);
  Write();
  EXPECT_EQ(logger_.lines.size(), 3u);
  now_ += seconds(1);
  Write();
  Write();
  EXPECT_EQ(logger_.lines.size(), 4u);
}

TEST_F(LogLimiterTest, SaysHowManyWereLeftOut) {
  for (int i = 0; i < 100; ++i) Write();
  now_ += seconds(30);
  Write();
  Write();
  ASSERT_EQ(logger_.lines.size(), 5u);
  EXPECT_TRUE(absl::StrContains(logger_.lines[3], "97")) << logger_.lines[3];
  EXPECT_EQ(logger_.lines[4], "x");
}

TEST_F(LogLimiterTest, AQuietTimeBringsBackTheBurstButNotMore) {
  for (int i = 0; i < 100; ++i) Write();
  now_ += seconds(100000);
  for (int i = 0; i < 100; ++i) Write();
  EXPECT_EQ(logger_.lines.size(), 6u);
}

}  // namespace
}  // namespace heapbroker

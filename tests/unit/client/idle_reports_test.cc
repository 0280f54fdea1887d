// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/idle_reports.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

IdleMemory Idle(uint64_t bytes) { return {.heap_index = 1, .bytes = Bytes(bytes)}; }

class IdleReportsTest : public testing::Test {
 protected:
  IdleReports reports_;
  IdleReports::Time now_ = std::chrono::steady_clock::now();
};

TEST_F(IdleReportsTest, TheFirstOneIsDueAtOnce) {
  EXPECT_FALSE(reports_.due());
  reports_.Set({Idle(5)});
  ASSERT_TRUE(reports_.due());
  EXPECT_LE(*reports_.due(), now_);
  EXPECT_THAT(reports_.Take(now_), ElementsAre(Idle(5)));
  EXPECT_FALSE(reports_.due());
}

TEST_F(IdleReportsTest, TheNextOneWaitsAndTheLastOneSetIsSent) {
  reports_.Set({Idle(5)});
  reports_.Take(now_);
  reports_.Set({Idle(6)});
  reports_.Set({Idle(7), Idle(8)});
  EXPECT_EQ(reports_.due(), now_ + kReportInterval);
  EXPECT_THAT(reports_.Take(now_ + kReportInterval), ElementsAre(Idle(7), Idle(8)));
}

TEST_F(IdleReportsTest, FewerThanTheDaemonAllowsGoOutInASecond) {
  int sent = 0;
  for (auto time = now_; time < now_ + std::chrono::seconds(1); time += kReportInterval / 5) {
    reports_.Set({Idle(static_cast<uint64_t>(time.time_since_epoch().count()))});
    if (*reports_.due() > time) continue;
    reports_.Take(time);
    ++sent;
  }
  EXPECT_EQ(sent, 8);
}

TEST_F(IdleReportsTest, WhatTheDaemonKnowsIsNotSaidAgain) {
  reports_.Set({});
  EXPECT_FALSE(reports_.due());
  reports_.Set({Idle(5)});
  reports_.Take(now_);
  reports_.Set({Idle(6)});
  reports_.Set({Idle(5)});
  EXPECT_FALSE(reports_.due());
  reports_.Set({});
  ASSERT_TRUE(reports_.due());
  EXPECT_THAT(reports_.Take(now_ + kReportInterval), IsEmpty());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbrokerctl and a real daemon.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "heapbroker/v1/stats.pb.h"
#include "tests/support/daemon_process.h"
#include "tests/support/process.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kLimit = absl::Seconds(30);

class CtlDaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto daemon = DaemonProcess::Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  CommandResult Ctl(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {BuiltProgramPath("heapbrokerctl"), "--runtime-dir",
                                        daemon_->runtime_dir()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto result = RunCommand({.command = command}, kLimit);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : CommandResult();
  }

  std::unique_ptr<DaemonProcess> daemon_;
};

TEST_F(CtlDaemonTest, EveryVerbIsAnswered) {
  for (const char* verb :
       {"stats", "pools", "heaps", "sessions", "leases", "segments", "trim", "health"}) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{verb}, {verb, "--json"}}) {
      const CommandResult result = Ctl(arguments);
      EXPECT_EQ(result.status, Exited(0)) << verb << ": " << result.error_output;
      EXPECT_THAT(result.output, Not(IsEmpty())) << verb;
      EXPECT_THAT(result.error_output, IsEmpty()) << verb;
    }
  }
  EXPECT_EQ(Ctl({"health"}).output, "SERVING\n");
}

TEST_F(CtlDaemonTest, JsonReadsBackAsTheReply) {
  const CommandResult result = Ctl({"stats", "--json"});
  v1::GetStatsResponse stats;
  const auto status = google::protobuf::util::JsonStringToMessage(result.output, &stats);
  ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << result.output;
  EXPECT_EQ(stats.observer_sessions(), 1u) << "its own";
  EXPECT_EQ(stats.client_sessions(), 0u);
  ASSERT_GE(stats.devices_size(), 1);
  EXPECT_GE(stats.devices(0).pools_size(), 2) << "one for a memory type, and the direct row";
}

TEST_F(CtlDaemonTest, SeesItselfOnlyWhereItAsksForObservers) {
  EXPECT_EQ(Ctl({"sessions"}).output, "0 sessions\n");
  EXPECT_THAT(Ctl({"sessions", "--observers"}).output, HasSubstr("heapbrokerctl (observer)"));
}

TEST_F(CtlDaemonTest, AnOutputThatCannotBeWrittenIsAnError) {
  const auto result =
      RunCommand({.command = {"sh", "-c", "exec \"$0\" --runtime-dir \"$1\" stats > /dev/full",
                              BuiltProgramPath("heapbrokerctl"), daemon_->runtime_dir()}},
                 kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->status, Exited(1));
  EXPECT_THAT(result->error_output, HasSubstr("standard output"));
}

TEST_F(CtlDaemonTest, ADaemonThatHasGoneIsNotReachable) {
  const auto ended = daemon_->Stop();
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, Exited(0)) << daemon_->Log();
  EXPECT_EQ(Ctl({"health"}).status, Exited(3));
}

TEST_F(CtlDaemonTest, ADaemonThatHangsIsNotReachable) {
  ASSERT_TRUE(daemon_->process().Signal(SIGSTOP).ok());
  EXPECT_EQ(Ctl({"health"}).status, Exited(3));
  ASSERT_TRUE(daemon_->process().Signal(SIGCONT).ok());
  EXPECT_EQ(Ctl({"health"}).status, Exited(0));
}

}  // namespace
}  // namespace heapbroker

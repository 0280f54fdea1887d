// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbrokerctl where there is no daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/posix/unix_socket.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

CommandResult Ctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), HEAPBROKERCTL_PROGRAM);
  const auto result =
      RunCommand({.command = arguments, .environment = {{"HEAPBROKER_RUNTIME_DIR", std::nullopt}}},
                 absl::Seconds(30));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : CommandResult();
}

TEST(CtlProgramTest, WhatItCannotReadIsAnErrorOfUsage) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"stats", "--nonsense"},
                                             {"stats", "health"},
                                             {"--runtime-dir"},
                                             {"stats", "--observers"},
                                             {"pools", "--watch"},
                                             {"trim", "--device", "first"},
                                             {"trim", "--device", "-1"},
                                             {"leases", "--session", "0"},
                                             {"trim", "1", "2"},
                                             {"leases", "--session", "-1"}}) {
    const CommandResult result = Ctl(arguments);
    EXPECT_EQ(result.status, Exited(2)) << testing::PrintToString(arguments);
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error_output, Not(IsEmpty()));
  }
}

TEST(CtlProgramTest, TellsItsVersionAndItsUse) {
  const CommandResult version = Ctl({"--version"});
  EXPECT_EQ(version.status, Exited(0));
  EXPECT_THAT(version.output, StartsWith("heapbrokerctl "));
  const CommandResult help = Ctl({"--help"});
  EXPECT_EQ(help.status, Exited(0));
  EXPECT_THAT(help.output, HasSubstr("segments"));
  EXPECT_THAT(help.output, HasSubstr("3 daemon not reachable"));
}

TEST(CtlProgramTest, ADirectoryWithoutADaemonIsNotReachable) {
  const TempDir dir;
  for (const char* verb :
       {"stats", "pools", "heaps", "sessions", "leases", "segments", "trim", "health"}) {
    const CommandResult result = Ctl({verb, "--runtime-dir", dir.path()});
    EXPECT_EQ(result.status, Exited(3)) << verb;
    EXPECT_THAT(result.output, IsEmpty());
    EXPECT_THAT(result.error_output, HasSubstr(dir.path()));
  }
}

TEST(CtlProgramTest, ASocketThatAKilledDaemonLeftIsNotReachable) {
  const TempDir dir;
  auto listener = ListenUnix(dir.File("session.sock"), SocketKind::kSeqPacket, 0600);
  ASSERT_TRUE(listener.ok()) << listener.status();
  listener->Reset();
  EXPECT_EQ(Ctl({"health", "--runtime-dir", dir.path()}).status, Exited(3));
}

}  // namespace
}  // namespace heapbroker

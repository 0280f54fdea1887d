// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One user who takes all that there is. Needs root, who is the other one.
#include <unistd.h>

#include <string>

#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/process.h"

namespace heapbroker {
namespace {

using testing::StartsWith;

class CrowdTest : public DaemonFixture {
 protected:
  absl::StatusOr<ExitStatus> Ctl(const std::string& command) {
    ProcessOptions options;
    options.command = {BuiltProgramPath("heapbrokerctl"), "--runtime-dir", runtime_dir(), command};
    HB_ASSIGN_OR_RETURN(Process ctl, Process::Start(options));
    return ctl.Wait(absl::Seconds(20));
  }
};

TEST_F(CrowdTest, AnAdministratorCanStillLookAndTrim) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run clients as another user";
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  ASSERT_OK_AND_ASSIGN(Process crowd,
                       Process::Start({.command = {BuiltProgramPath("crowd"), runtime_dir()},
                                       .uid = 1001,
                                       .input_pipe = true}));
  ASSERT_TRUE(
      WaitFor([&] { return crowd.Output().find('\n') != std::string::npos; }, absl::Seconds(60)))
      << crowd.ErrorOutput();
  // Of observers, clients and connections all that there are; of the latter two there are
  // fewer where descriptors are few.
  EXPECT_THAT(crowd.Output(), StartsWith("64 "));
  for (const char* command : {"health", "stats", "sessions", "trim"}) {
    ASSERT_OK_AND_ASSIGN(const ExitStatus ended, Ctl(command));
    EXPECT_EQ(ended, Exited(0)) << command;
  }
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "absl/strings/numbers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(20);

ProcessOptions Shell(const std::string& script) { return {.command = {"sh", "-c", script}}; }

bool Exists(pid_t pid) { return kill(pid, 0) == 0; }

TEST(ProcessTest, GivesOutputsAndExitCode) {
  const auto result = RunCommand(Shell("echo out; echo err >&2; exit 7"), kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->status, Exited(7));
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->error_output, "err\n");
}

TEST(ProcessTest, SaysThatThereIsNoSuchProgram) {
  const auto process = Process::Start({.command = {"/no/such/program"}});
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound) << process.status();
}

TEST(ProcessTest, MoreOutputThanAPipeHoldsBlocksNobody) {
  const auto result = RunCommand(Shell("head -c 1000000 /dev/zero"), kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output.size(), 1000000u);
}

TEST(ProcessTest, TellsWhichSignalKilledIt) {
  auto process = Process::Start(Shell("echo ready; exec sleep 100"));
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(WaitFor([&] { return process->Output() == "ready\n"; }));
  ASSERT_TRUE(process->Signal(SIGTERM).ok());
  const auto status = process->Wait(kLimit);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, KilledBy(SIGTERM));
  EXPECT_EQ(process->Signal(SIGTERM).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ProcessTest, AWaitThatPassesItsLimitShowsTheOutput) {
  auto process = Process::Start(Shell("echo busy; exec sleep 100"));
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(WaitFor([&] { return !process->Output().empty(); }));
  const auto status = process->Wait(absl::Milliseconds(1));
  EXPECT_EQ(status.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.status().message()), HasSubstr("busy"));
}

TEST(ProcessTest, InputStaysOpenUntilItIsClosed) {
  ProcessOptions options = Shell("cat; echo done");
  options.input_pipe = true;
  auto process = Process::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(process->Running());
  process->CloseInput();
  const auto status = process->Wait(kLimit);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(process->Output(), "done\n");
}

TEST(ProcessTest, EnvironmentIsAddedAndRemoved) {
  ProcessOptions options = Shell("echo ${HEAPBROKER_A-unset} ${HOME-unset}");
  options.environment = {{"HEAPBROKER_A", "a b"}, {"HOME", std::nullopt}};
  const auto result = RunCommand(options, kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "a b unset\n");
}

TEST(ProcessTest, RunsAsAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ProcessOptions options = Shell("id -u; id -g; id -G");
  options.uid = 1001;
  const auto result = RunCommand(options, kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "1001\n1001\n1001\n");
}

TEST(ProcessTest, InheritsNothingButTheStandardDescriptors) {
  // The shell's own list; ls has the directory open as well.
  const auto result = RunCommand(Shell("ls /proc/self/fd"), kLimit);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output, "0\n1\n2\n3\n");
}

TEST(ProcessTest, AProcessDiesWithItsObject) {
  pid_t pid;
  {
    auto process = Process::Start(Shell("exec sleep 100"));
    ASSERT_TRUE(process.ok()) << process.status();
    pid = process->pid();
    EXPECT_TRUE(Exists(pid));
  }
  EXPECT_FALSE(Exists(pid));
}

// The object survives here, and only the thread is gone: as if the whole test
// program had been killed.
TEST(ProcessTest, AProcessDiesWithItsStarter) {
  absl::StatusOr<Process> process = absl::UnknownError("not started");
  std::thread([&] { process = Process::Start(Shell("exec sleep 100")); }).join();
  ASSERT_TRUE(process.ok()) << process.status();
  const auto status = process->Wait(kLimit);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(*status, KilledBy(SIGKILL));
}

TEST(TempDirTest, IsPrivateAndGoesWithAllThatIsInIt) {
  std::string path;
  {
    const TempDir dir;
    path = dir.path();
    std::filesystem::create_directories(dir.File("a/b"));
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WaitForTest, SaysThatTheConditionNeverHeld) {
  EXPECT_FALSE(WaitFor([] { return false; }, absl::Milliseconds(5)));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

constexpr int kBodyEnded = 7;

// A process that runs `body` and then ends with kBodyEnded, or is killed if that
// takes ten seconds. Of its own, since signals are the whole process's.
template <typename Body>
pid_t StartChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    body();
    _exit(kBodyEnded);
  }
  return child;
}

// The exit code, or -1 for a process that was killed.
int WaitForExit(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool MainThreadSleeps(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  // The state stands behind the name, which is in parentheses.
  return absl::StrContains(stat, ") S ");
}

TEST(EndSignalsTest, OneThatComesWhileADriverHangsEndsTheProcessAtOnce) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const pid_t child = StartChild([signal] {
      const auto logger = MakeStderrLogger(LogLevel::kError);
      const EndSignals end_signals(*logger);
      kill(getpid(), signal);
      while (true) pause();
    });
    EXPECT_EQ(WaitForExit(child), 0);
  }
}

TEST(EndSignalsTest, OneThatComesAfterTheStartLeavesTimeToEnd) {
  for (const int signal : {SIGTERM, SIGINT}) {
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t child = StartChild([&] {
      const auto logger = MakeStderrLogger(LogLevel::kError);
      EndSignals end_signals(*logger);
      if (write(started[1], "x", 1) != 1) _exit(1);
      end_signals.Wait();
      kill(getpid(), signal);
    });
    char byte = 0;
    EXPECT_EQ(read(started[0], &byte, 1), 1);
    // After that byte there is nothing to sleep for but the signal.
    EXPECT_TRUE(WaitFor([child] { return MainThreadSleeps(child); }));
    kill(child, signal);
    EXPECT_EQ(WaitForExit(child), kBodyEnded);
    close(started[0]);
    close(started[1]);
  }
}

TEST(EndSignalsTest, NoneIsNeededToLeaveAfterAFailedStart) {
  const pid_t child = StartChild([] {
    const auto logger = MakeStderrLogger(LogLevel::kError);
    const EndSignals end_signals(*logger);
  });
  EXPECT_EQ(WaitForExit(child), kBodyEnded);
}

}  // namespace
}  // namespace heapbroker

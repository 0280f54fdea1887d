// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/logging.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

size_t LineCount(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(LogLevelTest, IsReadInUpperOrLowerCase) {
  EXPECT_EQ(ParseLogLevel("debug").value(), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("Warning").value(), LogLevel::kWarning);
  EXPECT_EQ(ParseLogLevel("ERROR").value(), LogLevel::kError);
}

TEST(LogLevelTest, AnUnknownOneIsRefusedWithTheKnownOnes) {
  const absl::Status status = ParseLogLevel("loud").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "debug, info, warning, error")) << status;
  EXPECT_FALSE(ParseLogLevel("").ok());
}

TEST(StderrLoggerTest, WritesOneLineForAMessageWhateverIsInIt) {
  testing::internal::CaptureStderr();
  const std::unique_ptr<Logger> logger = MakeStderrLogger(LogLevel::kInfo);
  logger->Info("one\ntwo\r{} %s {0} \x1B[31m");
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_EQ(LineCount(output), 1u) << output;
  EXPECT_EQ(output.find('\x1B'), std::string::npos) << output;
  EXPECT_EQ(output.find('\r'), std::string::npos) << output;
}

TEST(StderrLoggerTest, LeavesOutWhatIsBelowItsLevel) {
  testing::internal::CaptureStderr();
  const std::unique_ptr<Logger> logger = MakeStderrLogger(LogLevel::kWarning);
  logger->Debug("a");
  logger->Info("b");
  logger->Warning("c");
  logger->Error("d");
  EXPECT_EQ(LineCount(testing::internal::GetCapturedStderr()), 2u);
}

TEST(StderrLoggerTest, SeveralLoggersDoNotShareALevel) {
  testing::internal::CaptureStderr();
  const std::unique_ptr<Logger> quiet = MakeStderrLogger(LogLevel::kError);
  const std::unique_ptr<Logger> loud = MakeStderrLogger(LogLevel::kDebug);
  quiet->Info("a");
  loud->Debug("b");
  EXPECT_EQ(LineCount(testing::internal::GetCapturedStderr()), 1u);
}

TEST(StderrLoggerTest, CutsWhatAPipeWouldNotTakeAtOnce) {
  testing::internal::CaptureStderr();
  const std::unique_ptr<Logger> logger = MakeStderrLogger(LogLevel::kInfo);
  logger->Info(std::string(10 * PIPE_BUF, 'x'));
  logger->Info(std::string(10 * PIPE_BUF, '\n'));
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_EQ(LineCount(output), 2u);
  EXPECT_LE(output.size(), 2u * PIPE_BUF);
}

// A pipe as standard error of a child process; its end that is read belongs to
// the test.
class PipedLoggerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
    reader_.Reset(pipe_[0]);
    writer_.Reset(pipe_[1]);
  }

  // Not one byte more fits. The writing end blocks afterwards, as a shell's pipe.
  void Fill() {
    const int flags = fcntl(writer_.get(), F_GETFL);
    ASSERT_EQ(fcntl(writer_.get(), F_SETFL, flags | O_NONBLOCK), 0);
    const std::string chunk(PIPE_BUF, '\n');
    while (write(writer_.get(), chunk.data(), chunk.size()) > 0) continue;
    ASSERT_EQ(errno, EAGAIN);
    ASSERT_EQ(fcntl(writer_.get(), F_SETFL, flags), 0);
  }
  void Drain() {
    const int flags = fcntl(reader_.get(), F_GETFL);
    ASSERT_EQ(fcntl(reader_.get(), F_SETFL, flags | O_NONBLOCK), 0);
    char chunk[PIPE_BUF];
    while (read(reader_.get(), chunk, sizeof(chunk)) > 0) continue;
  }

  // Runs `body` in a child whose standard error is the pipe, and which is killed
  // if it takes longer than ten seconds. Returns as waitpid does.
  template <typename Body>
  int RunInChild(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      dup2(writer_.get(), STDERR_FILENO);
      body();
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  int pipe_[2] = {-1, -1};
  UniqueFd reader_;
  UniqueFd writer_;
};

TEST_F(PipedLoggerTest, DoesNotWaitForAFullPipeAndTellsAfterwardsWhatWasLost) {
  Fill();
  EXPECT_EQ(RunInChild([this] {
              const std::unique_ptr<Logger> logger = MakeStderrLogger(LogLevel::kInfo);
              for (int i = 0; i < 12; ++i) logger->Info("lost");
              Drain();
              logger->Info("one");
              logger->Info("two");
            }),
            0);
  writer_.Reset();
  std::string output;
  char chunk[PIPE_BUF];
  ssize_t size = 0;
  while ((size = read(reader_.get(), chunk, sizeof(chunk))) > 0) output.append(chunk, size);
  ASSERT_EQ(LineCount(output), 2u) << output;
  const std::string first = output.substr(0, output.find('\n'));
  const std::string second = output.substr(output.find('\n'));
  EXPECT_TRUE(absl::StrContains(first, " 12)")) << output;
  EXPECT_FALSE(absl::StrContains(second, " 12)")) << output;
}

TEST_F(PipedLoggerTest, SurvivesAReaderThatHasGone) {
  reader_.Reset();
  EXPECT_EQ(RunInChild([] {
              std::signal(SIGPIPE, SIG_DFL);
              MakeStderrLogger(LogLevel::kInfo)->Info("nobody reads this");
            }),
            0);
}

}  // namespace
}  // namespace heapbroker

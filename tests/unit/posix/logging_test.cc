// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/logging.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
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

}  // namespace
}  // namespace heapbroker

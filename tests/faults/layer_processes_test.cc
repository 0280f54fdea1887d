// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Faults that a process does not survive, and what it leaves behind.
#include <csignal>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/fault_file.h"
#include "tests/support/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(30);

ProcessOptions Allocating(const FaultFile& file, const std::vector<std::string>& arguments) {
  ProcessOptions options{.command = {HEAPBROKER_ALLOCATING_PROGRAM},
                         .environment = file.Environment()};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

uint64_t FaultsSoFar(const FaultFile& file) {
  absl::StatusOr<faults::Report> report = file.Report();
  return report.ok() ? report->devices["default"].faults : 0;
}

TEST(LayerProcessesTest, AProcessUnderTheLayerWritesItsReport) {
  const FaultFile file("");
  EXPECT_THAT(file.Report(), StatusIs(absl::StatusCode::kUnavailable, "no process"));
  ASSERT_OK_AND_ASSIGN(const CommandResult result,
                       RunCommand(Allocating(file, {"3", "65536"}), kLimit));
  EXPECT_EQ(result.status, Exited(0)) << result.error_output;
  EXPECT_EQ(file.Device("default").peak_allocations, 3u);
  EXPECT_EQ(file.Device("default").live_allocations, 0u);
  EXPECT_EQ(file.Violations(), "");
}

TEST(LayerProcessesTest, AHangingCallNeverReturns) {
  const FaultFile file("fault vkAllocateMemory:2:hang\n");
  ASSERT_OK_AND_ASSIGN(Process process, Process::Start(Allocating(file, {"3", "65536"})));
  ASSERT_TRUE(WaitFor([&] { return FaultsSoFar(file) == 1; }));
  EXPECT_THAT(process.Wait(absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  // The report is there while the process runs, and when it was killed.
  EXPECT_EQ(file.Device("default").live_allocations, 1u);
  ASSERT_THAT(process.Signal(SIGKILL), IsOk());
  ASSERT_OK_AND_ASSIGN(const ExitStatus end, process.Wait(kLimit));
  EXPECT_EQ(end, KilledBy(SIGKILL));
  EXPECT_EQ(file.Device("default").live_allocations, 1u);
}

TEST(LayerProcessesTest, AViolationEndsTheProcessWhereThePlanSaysSo) {
  const FaultFile file("on_violation abort\n");
  ASSERT_OK_AND_ASSIGN(const CommandResult result,
                       RunCommand(Allocating(file, {"1", "65536", "keep"}), kLimit));
  EXPECT_EQ(result.status, KilledBy(SIGABRT));
  EXPECT_EQ(file.Report()->violation_count, 1u);
}

TEST(LayerProcessesTest, WhatIsLeftIsInTheReportAfterTheProcessEnded) {
  const FaultFile file("");
  ASSERT_OK_AND_ASSIGN(const CommandResult result,
                       RunCommand(Allocating(file, {"2", "65536", "keep"}), kLimit));
  EXPECT_EQ(result.status, Exited(0)) << result.error_output;
  EXPECT_THAT(file.Violations(), testing::HasSubstr("allocations: 2, bytes: 131072"));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker::faults {
namespace {

TEST(ReportTest, ReadsWhatItWrote) {
  Report report;
  report.pid = 12;
  report.instances = 3;
  report.violation_count = 40;
  report.violations = {"vkFreeMemory of memory that is not alive", "two\nlines"};
  DeviceCounters& device = report.devices["gpu"];
  device.calls[static_cast<size_t>(Function::kImport)] = 7;
  device.faults = 1;
  device.live_allocations = 2;
  device.peak_allocations = 3;
  device.live_bytes = 4;
  device.peak_bytes = 5;
  device.live_buffers = 6;
  device.live_fences = 7;
  device.live_command_pools = 8;
  device.live_devices = 9;
  device.exported_descriptors = 10;
  device.live_heap_bytes[1] = 11;

  ASSERT_OK_AND_ASSIGN(Report read, ParseReport(FormatReport(report, 99)));
  EXPECT_EQ(read.pid, 12u);
  EXPECT_EQ(read.instances, 3u);
  EXPECT_EQ(read.violation_count, 40u);
  EXPECT_THAT(read.violations,
              testing::ElementsAre("vkFreeMemory of memory that is not alive", "two lines"));
  ASSERT_EQ(read.devices.size(), 1u);
  const DeviceCounters& gpu = read.devices["gpu"];
  EXPECT_EQ(gpu.CallsOf(Function::kImport), 7u);
  EXPECT_EQ(gpu.CallsOf(Function::kAllocateMemory), 0u);
  EXPECT_EQ(gpu.faults, 1u);
  EXPECT_EQ(gpu.live_allocations, 2u);
  EXPECT_EQ(gpu.peak_allocations, 3u);
  EXPECT_EQ(gpu.live_bytes, 4u);
  EXPECT_EQ(gpu.peak_bytes, 5u);
  EXPECT_EQ(gpu.live_buffers, 6u);
  EXPECT_EQ(gpu.live_fences, 7u);
  EXPECT_EQ(gpu.live_command_pools, 8u);
  EXPECT_EQ(gpu.live_devices, 9u);
  EXPECT_EQ(gpu.exported_descriptors, 10u);
  EXPECT_EQ(gpu.live_heap_bytes.at(1), 11u);
}

TEST(ReportTest, KnowsAHalfWrittenReport) {
  const std::string old_text = FormatReport(Report{}, 1);
  const std::string new_text = FormatReport(Report{}, 2);
  for (const std::string& text : {std::string(), new_text.substr(0, new_text.size() - 6),
                                  new_text.substr(0, 12) + old_text.substr(12)}) {
    EXPECT_THAT(ParseReport(text), StatusIs(absl::StatusCode::kUnavailable, "report")) << text;
  }
}

TEST(ReportTest, StopsAtItsEndWhateverFollows) {
  EXPECT_THAT(ParseReport(FormatReport(Report{}, 1) + std::string(3, '\0')), IsOk());
}

TEST(ReportTest, RefusesAnythingElse) {
  EXPECT_THAT(ParseReport("sequence 1\nweather fine\nend 1\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, "weather"));
}

}  // namespace
}  // namespace heapbroker::faults

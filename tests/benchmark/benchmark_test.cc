// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// That the benchmarks run and print everything; never how long it took.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"
#include "tests/support/process.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(300);

class BrokerBenchmarkTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BrokerBenchmarkTest, PrintsARatioForEachCallAndWhetherTheGoalIsMet) {
  ProcessOptions options;
  options.command = {BuiltProgramPath("broker_benchmark"), "--cores", GetParam()};
  for (const char* const few : {"--rounds", "2", "--calls", "4", "--slice", "2"}) {
    options.command.push_back(few);
  }
  const auto result = RunCommand(options, kLimit);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->status, Exited(0)) << result->error_output;
  for (const char* const row :
       {"raw gRPC echo", "Allocate, from the cache", "Release, to the cache",
        "Health.Check of the daemon", "lease: Allocate . Release",
        "lease: Allocate . Fetch . import . Release", "Fetch of a descriptor",
        "import of a fetched block", "raw socket, 32 bytes",
        "raw socket, 32 bytes and a descriptor", "vkAllocateMemory . export . free, no daemon"}) {
    EXPECT_THAT(result->output, ContainsRegex(std::string(row) + " +[0-9.]+ us +[0-9.]+ "));
  }
  EXPECT_THAT(result->output, ContainsRegex("Goal: Allocate .* (met|missed)"));
}

INSTANTIATE_TEST_SUITE_P(Cores, BrokerBenchmarkTest, ::testing::Values("one", "all"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(BrokerBenchmarkCommandLineTest, RefusesAWrongCommandLine) {
  const auto result =
      RunCommand({.command = {BuiltProgramPath("broker_benchmark"), "--rounds", "0"}}, kLimit);
  ASSERT_THAT(result, IsOk());
  EXPECT_NE(result->status, Exited(0));
  EXPECT_THAT(result->error_output, HasSubstr("--rounds"));
}

TEST(CoreBenchmarkTest, PrintsARatioForEachNumberOfIdleBlocks) {
  const auto result = RunCommand(
      {.command = {BuiltProgramPath("core_benchmark"), "--benchmark_min_time=0.001"}}, kLimit);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->status, Exited(0)) << result->error_output;
  for (const char* const what :
       {"CachingPool/hot", "CachingPool/random", "DeviceBroker/hot", "DeviceBroker/random"}) {
    for (const char* const idle : {"1000", "10000", "100000"}) {
      EXPECT_THAT(result->output,
                  ContainsRegex(std::string(what) + " +" + idle + " +[0-9]+ ns +[0-9.]+ "));
    }
  }
  EXPECT_THAT(result->output, ContainsRegex("memory: [0-9]+ bytes for an idle block"));
  EXPECT_THAT(result->output, ContainsRegex("two threads on two devices: [0-9.]+ x"));
  EXPECT_THAT(result->output, ContainsRegex("vgg16 +0% . +[0-9.]+%"));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// That the benchmarks run and print everything; never how long it took.
#include <string>

#include "absl/strings/str_cat.h"
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
  EXPECT_THAT(result->output, ContainsRegex("plan of 12 arenas: leased and imported +[0-9.]+ us"));
  EXPECT_THAT(result->output, ContainsRegex("Goal: Allocate .* (met|missed)"));
  EXPECT_THAT(result->output, ContainsRegex("Goal: the plan .* (met|missed)"));
  EXPECT_THAT(
      result->output,
      ContainsRegex("attach to a sealed segment, 1.0 GiB: [0-9.]+ x|no room for the large"));
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

TEST(SuballocatorBenchmarkTest, PrintsARowForEachAllocatorOnEachTraceAndWhetherTheGoalIsMet) {
  ProcessOptions options;
  options.command = {BuiltProgramPath("suballocator_benchmark")};
  for (const char* const few : {"--rounds", "2", "--steps", "500", "--many", "300"}) {
    options.command.push_back(few);
  }
  const auto result = RunCommand(options, kLimit);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->status, Exited(0)) << result->error_output;
  for (const char* const trace :
       {"log-normal, 300 live", "mixed alignments", "decode loop", "like ncnn", "like ggml"}) {
    for (const char* const threads : {"1 thread", "2 threads"}) {
      EXPECT_THAT(result->output, ContainsRegex(absl::StrCat(trace, ".* at once; ", threads)));
    }
  }
  for (const char* const allocator : {"RangeAllocator", "DeviceAllocator", "pmr pool_resource"}) {
    EXPECT_THAT(result->output,
                ContainsRegex(absl::StrCat(allocator, " .*[0-9.]+ +[0-9.]+ ns +[0-9.]+ ")));
  }
  EXPECT_THAT(result->output, ContainsRegex("Goal.*(met|missed)|VulkanMemoryAllocator is not"));
}

}  // namespace
}  // namespace heapbroker

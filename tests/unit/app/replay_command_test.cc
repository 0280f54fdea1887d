// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/replay_command.h"

#include <string>
#include <vector>

#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

std::vector<TracedDevice> OneDevice() {
  TracedDevice device;
  device.info = SimulatedDeviceInfo();
  device.options.admission.heaps = {HeapLimit{MiB(100), 900}};
  return {device};
}

ReplayOptions::Pools PoolsOf(const std::string& text) { return {text, *ParsePoolSpecs(text)}; }

std::vector<std::string> NamesOf(const std::vector<ReplayConfiguration>& configurations) {
  std::vector<std::string> names;
  for (const ReplayConfiguration& one : configurations) names.push_back(one.name);
  return names;
}

TEST(ReplayCommandTest, WithoutAnyOptionThereIsOnlyTheRecordedConfiguration) {
  ASSERT_OK_AND_ASSIGN(const auto none, MakeConfigurations({}, OneDevice()));
  EXPECT_TRUE(none.empty());
}

TEST(ReplayCommandTest, EachPoolValueIsAConfigurationOfItsOwn) {
  ReplayOptions options;
  options.pools = {PoolsOf("device_local=1mib,device_local"), PoolsOf("unbounded")};
  ASSERT_OK_AND_ASSIGN(const auto made, MakeConfigurations(options, OneDevice()));
  EXPECT_EQ(NamesOf(made),
            (std::vector<std::string>{"device_local=1mib,device_local", "unbounded"}));
  EXPECT_EQ(made[0].devices[0].admission.pools.size(), 2u);
  EXPECT_EQ(made[0].devices[0].admission.heaps[0].bytes, MiB(100));
}

TEST(ReplayCommandTest, WhatIsGivenAgainIsCombined) {
  ReplayOptions options;
  options.pools = {PoolsOf("*"), PoolsOf("unbounded")};
  options.matchings = {Matching::kBestFit, Matching::kExact};
  options.idle_ttls = {absl::Seconds(90)};
  ASSERT_OK_AND_ASSIGN(const auto made, MakeConfigurations(options, OneDevice()));
  EXPECT_EQ(NamesOf(made), (std::vector<std::string>{
                               "*, best_fit, idle 1m30s", "*, exact, idle 1m30s",
                               "unbounded, best_fit, idle 1m30s", "unbounded, exact, idle 1m30s"}));
  EXPECT_EQ(made[3].devices[0].admission.matching.matching, Matching::kExact);
  EXPECT_EQ(made[3].devices[0].admission.idle_ttl, absl::Seconds(90));
}

TEST(ReplayCommandTest, BudgetsAreThoseOfEveryConfiguration) {
  ReplayOptions options;
  options.heap_budgets = {{0, MiB(7)}};
  ASSERT_OK_AND_ASSIGN(const auto made, MakeConfigurations(options, OneDevice()));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].devices[0].admission.heaps[0].bytes, MiB(7));
  EXPECT_FALSE(made[0].devices[0].admission.heaps[0].driver_per_mille.has_value());
}

TEST(ReplayCommandTest, WhatTheRecordingDoesNotHaveIsNamed) {
  ReplayOptions options;
  options.heap_budgets = {{1, MiB(7)}};
  EXPECT_THAT(MakeConfigurations(options, OneDevice()),
              StatusIs(StatusCode::kInvalidArgument, "heap 1"));
  options.heap_budgets = {{0, MiB(7), 1}};
  EXPECT_THAT(MakeConfigurations(options, OneDevice()),
              StatusIs(StatusCode::kInvalidArgument, "device 1"));
  std::vector<TracedDevice> devices = OneDevice();
  devices[0].info.memory_types[0].host_cached = false;
  options.heap_budgets.clear();
  options.pools = {PoolsOf("host_cached")};
  EXPECT_THAT(MakeConfigurations(options, devices),
              StatusIs(StatusCode::kFailedPrecondition, "host_cached"));
}

TEST(ReplayCommandTest, TooManyCombinationsAreRefused) {
  ReplayOptions options;
  for (uint32_t i = 0; i < 11; ++i) {
    options.slacks_per_mille.push_back(i);
    options.idle_ttls.push_back(absl::Seconds(i));
  }
  EXPECT_THAT(MakeConfigurations(options, OneDevice()),
              StatusIs(StatusCode::kInvalidArgument, "at most 100"));
}

TEST(ReplayCommandTest, AFileThatIsNotThereIsAnError) {
  ReplayOptions options;
  options.path = "/no/such/trace";
  EXPECT_THAT(RunReplay(options), StatusIs(StatusCode::kNotFound, "/no/such/trace"));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/ledgers.h"

#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

const Machine kMachine{{100000, 65530}, GiB(1)};

std::vector<DeviceInfo> DevicesOf(const std::vector<DeviceType>& types) {
  std::vector<DeviceInfo> devices;
  for (const DeviceType type : types) {
    DeviceInfo& device = devices.emplace_back(SimulatedDeviceInfo());
    device.index = static_cast<uint32_t>(devices.size() - 1);
    device.type = type;
  }
  return devices;
}

DaemonOptions OptionsWith(const std::vector<std::string>& pools) {
  DaemonOptions options;
  options.pools = *ParsePoolValues(pools);
  return options;
}

TEST(LedgersTest, EachDeviceHasItsOwnLimits) {
  DaemonOptions options = OptionsWith({});
  options.heap_budgets = {{0, MiB(7), 1}};
  ASSERT_OK_AND_ASSIGN(
      const Ledgers ledgers,
      ChooseLedgers(DevicesOf({DeviceType::kDiscreteGpu, DeviceType::kDiscreteGpu}), options,
                    kMachine));
  ASSERT_EQ(ledgers.options.size(), 2u);
  EXPECT_EQ(ledgers.options[0].admission.heaps[0].driver_per_mille, 900u);
  EXPECT_EQ(ledgers.options[1].admission.heaps[0].bytes, MiB(7));
  EXPECT_TRUE(ledgers.warnings.empty());
}

TEST(LedgersTest, SoftwareDevicesShareTheMachinesMemory) {
  ASSERT_OK_AND_ASSIGN(
      const Ledgers ledgers,
      ChooseLedgers(DevicesOf({DeviceType::kCpu, DeviceType::kDiscreteGpu, DeviceType::kCpu}),
                    OptionsWith({}), kMachine));
  EXPECT_EQ(ledgers.options[0].admission.heaps[0].bytes, MiB(256));
  EXPECT_EQ(ledgers.options[2].admission.heaps[0].bytes, MiB(256));
  EXPECT_EQ(ledgers.options[0].tenants, TenantRule::kFirstTenantOnly);
  EXPECT_EQ(ledgers.options[1].tenants, TenantRule::kAnyTenant);
}

TEST(LedgersTest, WhatIsSaidOfThePoolsIsSaidToEachDevice) {
  DaemonOptions options = OptionsWith({"device_local=1mib;2mib;3"});
  options.matching = {Matching::kExact, 10};
  options.idle_ttl = absl::Seconds(90);
  ASSERT_OK_AND_ASSIGN(
      const Ledgers ledgers,
      ChooseLedgers(DevicesOf({DeviceType::kDiscreteGpu, DeviceType::kDiscreteGpu}), options,
                    kMachine));
  for (const LedgerOptions& ledger : ledgers.options) {
    ASSERT_EQ(ledger.admission.pools.size(), 1u);
    EXPECT_EQ(ledger.admission.pools[0].limits.max_free_allocation_count, 3u);
    EXPECT_EQ(ledger.admission.matching.matching, Matching::kExact);
    EXPECT_EQ(ledger.admission.idle_ttl, absl::Seconds(90));
  }
}

TEST(LedgersTest, PoolsThatOneDeviceLacksAreAWarningAndThatAllLackAnError) {
  std::vector<DeviceInfo> devices = DevicesOf({DeviceType::kDiscreteGpu, DeviceType::kDiscreteGpu});
  devices[1].memory_types[0].host_cached = false;
  ASSERT_OK_AND_ASSIGN(const Ledgers ledgers,
                       ChooseLedgers(devices, OptionsWith({"host_cached"}), kMachine));
  EXPECT_EQ(ledgers.warnings.size(), 1u);
  devices[0].memory_types[0].host_cached = false;
  EXPECT_THAT(ChooseLedgers(devices, OptionsWith({"host_cached"}), kMachine),
              StatusIs(StatusCode::kFailedPrecondition, "host_cached"));
}

TEST(LedgersTest, ABudgetForADeviceThatIsNotThereIsRefused) {
  DaemonOptions options = OptionsWith({});
  options.heap_budgets = {{0, MiB(7), 1}};
  EXPECT_THAT(ChooseLedgers(DevicesOf({DeviceType::kDiscreteGpu}), options, kMachine),
              StatusIs(StatusCode::kInvalidArgument, "device 1"));
}

}  // namespace
}  // namespace heapbroker

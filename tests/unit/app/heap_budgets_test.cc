// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/heap_budgets.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

DeviceInfo Device(DeviceType type, std::vector<Bytes> heaps) {
  DeviceInfo info;
  info.type = type;
  for (Bytes size : heaps) info.heaps.push_back({size, true});
  return info;
}

std::vector<Bytes> Limits(const HeapBudgets& budgets) {
  std::vector<Bytes> limits;
  for (const HeapLimit& limit : budgets.limits) limits.push_back(limit.bytes);
  return limits;
}

TEST(HeapBudgetsTest, LeavesATenthOfAHardwareHeapToOthers) {
  const DeviceInfo info = Device(DeviceType::kDiscreteGpu, {GiB(10), MiB(250)});
  ASSERT_OK_AND_ASSIGN(const HeapBudgets budgets, ChooseHeapBudgets(info, GiB(1), {}));
  EXPECT_EQ(Limits(budgets), (std::vector<Bytes>{GiB(9), MiB(225)}));
  EXPECT_TRUE(budgets.warnings.empty());
}

TEST(HeapBudgetsTest, WhatTheDriverOffersAtStartIsNoLimitForEver) {
  DeviceInfo info = Device(DeviceType::kDiscreteGpu, {GiB(10)});
  info.heaps[0].driver_budget = GiB(5);
  const HeapLimit limit = ChooseHeapBudgets(info, GiB(1), {})->limits.at(0);
  EXPECT_EQ(limit.bytes, GiB(9));
  EXPECT_EQ(limit.driver_per_mille, 900u);
}

TEST(HeapBudgetsTest, AnAdministratorsLimitHoldsWhateverTheDriverOffers) {
  const DeviceInfo info = Device(DeviceType::kDiscreteGpu, {GiB(10), GiB(10)});
  ASSERT_OK_AND_ASSIGN(const HeapBudgets budgets, ChooseHeapBudgets(info, GiB(1), {{1, GiB(8)}}));
  EXPECT_TRUE(budgets.limits[0].driver_per_mille.has_value());
  EXPECT_EQ(budgets.limits[1].bytes, GiB(8));
  EXPECT_FALSE(budgets.limits[1].driver_per_mille.has_value());
}

TEST(HeapBudgetsTest, ASoftwareDeviceGetsAtMostHalfOfTheMachine) {
  const DeviceInfo info = Device(DeviceType::kCpu, {GiB(2)});
  EXPECT_EQ(ChooseHeapBudgets(info, GiB(64), {})->limits.at(0).bytes, GiB(2));
  EXPECT_EQ(ChooseHeapBudgets(info, GiB(1), {})->limits.at(0).bytes, MiB(512));
}

TEST(HeapBudgetsTest, AnOptionMayExceedTheReportedHeapAndIsWarnedOf) {
  const DeviceInfo info = Device(DeviceType::kCpu, {GiB(2)});
  ASSERT_OK_AND_ASSIGN(const HeapBudgets budgets,
                       ChooseHeapBudgets(info, GiB(1), {{std::nullopt, GiB(6)}}));
  EXPECT_EQ(budgets.limits.at(0).bytes, GiB(6));
  ASSERT_EQ(budgets.warnings.size(), 1u);
}

TEST(HeapBudgetsTest, AnOptionForOneHeapLeavesTheOthersAlone) {
  const DeviceInfo info = Device(DeviceType::kDiscreteGpu, {GiB(10), GiB(10)});
  ASSERT_OK_AND_ASSIGN(const HeapBudgets budgets,
                       ChooseHeapBudgets(info, GiB(1), {{std::nullopt, GiB(4)}, {1, GiB(2)}}));
  EXPECT_EQ(Limits(budgets), (std::vector<Bytes>{GiB(4), GiB(2)}));
  EXPECT_THAT(ChooseHeapBudgets(info, GiB(1), {{2, GiB(2)}}),
              StatusIs(StatusCode::kInvalidArgument, "device 0 has 2"));
}

TEST(HeapBudgetsTest, ReadsAnOptionForAllHeapsOrForOne) {
  ASSERT_OK_AND_ASSIGN(const HeapBudgetOption all, ParseHeapBudget("4GiB"));
  EXPECT_FALSE(all.heap.has_value());
  EXPECT_EQ(all.limit, GiB(4));
  ASSERT_OK_AND_ASSIGN(const HeapBudgetOption one, ParseHeapBudget("1=512 mib"));
  EXPECT_EQ(one.heap, 1u);
  EXPECT_EQ(one.limit, MiB(512));
  ASSERT_OK_AND_ASSIGN(const HeapBudgetOption device, ParseHeapBudget("2:1=512mib"));
  EXPECT_EQ(device.device, 2u);
  EXPECT_EQ(device.heap, 1u);
  ASSERT_OK_AND_ASSIGN(const HeapBudgetOption all_of_one, ParseHeapBudget("2:512mib"));
  EXPECT_EQ(all_of_one.device, 2u);
  EXPECT_FALSE(all_of_one.heap.has_value());
  for (const char* bad : {"", "=", "x=1gib", "-1=1gib", "1=", "0", "1=0b", "4GiB=0", ":1gib",
                          "x:1gib", "1:", "1:x=1gib", "1:2:1gib"}) {
    EXPECT_THAT(ParseHeapBudget(bad), StatusIs(StatusCode::kInvalidArgument, "")) << bad;
  }
}

TEST(HeapBudgetsTest, AnOptionForOneDeviceLeavesTheOthersAlone) {
  DeviceInfo first = Device(DeviceType::kDiscreteGpu, {GiB(10)});
  DeviceInfo second = first;
  second.index = 1;
  const std::vector<HeapBudgetOption> options = {{0, GiB(4), 1}, {7, GiB(4), 2}};
  EXPECT_EQ(ChooseHeapBudgets(first, GiB(1), options)->limits[0].bytes, GiB(9));
  EXPECT_EQ(ChooseHeapBudgets(second, GiB(1), options)->limits[0].bytes, GiB(4));
  EXPECT_THAT(CheckBudgetDevices(options, 3), IsOk());
  EXPECT_THAT(CheckBudgetDevices(options, 2), StatusIs(StatusCode::kInvalidArgument, "are 2"));
}

TEST(HeapBudgetsTest, ReadsAControlGroupsLimit) {
  EXPECT_EQ(ParseMemoryMax("1073741824\n"), GiB(1));
  EXPECT_EQ(ParseMemoryMax("max\n"), std::nullopt);
  EXPECT_EQ(ParseMemoryMax(""), std::nullopt);
}

TEST(HeapBudgetsTest, TheMachineHasMemory) { EXPECT_GT(MachineMemory(), MiB(64)); }

}  // namespace
}  // namespace heapbroker

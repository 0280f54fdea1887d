// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/count_limits.h"

#include <limits>
#include <optional>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

DeviceInfo Device(DeviceType type, uint64_t max_allocation_count) {
  DeviceInfo info;
  info.type = type;
  info.max_allocation_count = max_allocation_count;
  return info;
}

constexpr ProcessLimits kRoomy{1 << 20, 1 << 20};

// Unset where there is no such limit.
std::optional<uint64_t> LimitOf(const std::vector<CountLimit>& limits, LimitKind kind) {
  for (const CountLimit& limit : limits) {
    if (limit.kind == kind) return limit.blocks;
  }
  return std::nullopt;
}

TEST(CountLimitsTest, StaysUnderTheDevicesOwnCount) {
  const auto limits = ChooseCountLimits(Device(DeviceType::kDiscreteGpu, 4096), kRoomy, {1, 0});
  EXPECT_EQ(LimitOf(limits, LimitKind::kMaxAllocationCount), 4080u);
  // Even a few are not all margin.
  EXPECT_EQ(LimitOf(ChooseCountLimits(Device(DeviceType::kDiscreteGpu, 64), kRoomy, {1, 0}),
                    LimitKind::kMaxAllocationCount),
            56u);
}

TEST(CountLimitsTest, ADriverWithoutALimitIsShownWithout) {
  const DeviceInfo device = Device(DeviceType::kCpu, std::numeric_limits<uint32_t>::max());
  const auto limits = ChooseCountLimits(device, kRoomy, {1, 1});
  EXPECT_FALSE(LimitOf(limits, LimitKind::kMaxAllocationCount).has_value());
  EXPECT_TRUE(LimitOf(limits, LimitKind::kDescriptors).has_value());
}

TEST(CountLimitsTest, LeavesDescriptorsToPeersAndTwoToEachBlock) {
  const DeviceInfo device = Device(DeviceType::kDiscreteGpu, 4096);
  EXPECT_EQ(LimitOf(ChooseCountLimits(device, {1024, 65530}, {1, 0}), LimitKind::kDescriptors),
            256u);
  EXPECT_EQ(LimitOf(ChooseCountLimits(device, {104096, 65530}, {1, 0}), LimitKind::kDescriptors),
            50000u);
  EXPECT_EQ(MaxPeers(1000000, 1024), 128u);
  EXPECT_EQ(MaxPeers(1000000, 1 << 20), 1024u);
  EXPECT_EQ(MaxPeers(10, 1024), 10u);
  // With one more of each session they stay below the limit.
  EXPECT_LT(FewUnreadDescriptors(1024) + MaxPeers(1000000, 1024), 1024u);
}

TEST(CountLimitsTest, DevicesShareWhatIsTheProcesss) {
  const DeviceInfo hardware = Device(DeviceType::kDiscreteGpu, 4096);
  const DeviceInfo software = Device(DeviceType::kCpu, 1 << 30);
  const ProcessLimits process{1024, 65536};
  const DeviceCounts devices{4, 2};
  EXPECT_EQ(LimitOf(ChooseCountLimits(hardware, process, devices), LimitKind::kDescriptors), 64u);
  EXPECT_EQ(LimitOf(ChooseCountLimits(hardware, process, devices), LimitKind::kMaxAllocationCount),
            4080u);
  // (65536 - 4096) mappings for two devices, two for each block.
  EXPECT_EQ(LimitOf(ChooseCountLimits(software, process, devices), LimitKind::kMemoryMaps), 15360u);
}

TEST(CountLimitsTest, OnlyBlocksOfSoftwareDevicesAreMappings) {
  EXPECT_FALSE(LimitOf(ChooseCountLimits(Device(DeviceType::kDiscreteGpu, 4096), kRoomy, {1, 0}),
                       LimitKind::kMemoryMaps)
                   .has_value());
}

TEST(CountLimitsTest, TheProcessHasLimits) {
  const ProcessLimits limits = RaiseAndReadProcessLimits();
  EXPECT_GE(limits.descriptors, 64u);
  EXPECT_GE(limits.memory_maps, 1000u);
}

}  // namespace
}  // namespace heapbroker

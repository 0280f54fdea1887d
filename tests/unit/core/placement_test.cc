// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/placement.h"

#include <string>
#include <vector>

#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

// Device memory, uploads, a window into device memory, and cached host memory.
DeviceInfo Discrete() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps = {{GiB(8), true}, {GiB(16), false}, {MiB(256), true}};
  info.memory_types.assign(4, MemoryTypeInfo());
  const auto set = [&](uint32_t index, uint32_t heap, bool local, bool visible, bool cached) {
    MemoryTypeInfo& type = info.memory_types[index];
    type.heap = heap;
    type.device_local = local;
    type.host_visible = type.host_coherent = visible;
    type.host_cached = cached;
    type.exportable.opaque_fd = true;
  };
  set(0, 0, true, false, false);
  set(1, 1, false, true, false);
  set(2, 2, true, true, false);
  set(3, 1, false, true, true);
  return info;
}

class PlacementTest : public ::testing::Test {
 protected:
  // The pools that a wish asks, by their positions in the configuration.
  std::vector<size_t> PoolsOf(absl::string_view pools, const MemoryWish& wish,
                              bool transient = false) {
    const Placements placements(device_, Resolved(pools));
    const auto found = placements.Find(wish, std::nullopt, transient);
    EXPECT_THAT(found, IsOk());
    std::vector<size_t> order;
    if (!found.ok()) return order;
    for (const PoolChoice& choice : (*found)->pools) order.push_back(choice.pool);
    return order;
  }
  std::vector<ResolvedPool> Resolved(absl::string_view text) const {
    const auto specs = ParsePoolSpecs(text);
    EXPECT_THAT(specs, IsOk());
    return ResolvePools(*specs, device_).pools;
  }

  DeviceInfo device_ = Discrete();
};

using Order = std::vector<size_t>;

TEST_F(PlacementTest, AmongThePoolsOfOneKeyForEveryTypeTheBestTypeGoesFirst) {
  EXPECT_EQ(PoolsOf("", MemoryKind::kDeviceLocal), (Order{0, 2}));
  EXPECT_EQ(PoolsOf("", MemoryKind::kHostVisible), (Order{1, 3, 2}));
  EXPECT_EQ(PoolsOf("", MemoryKind::kHostCached), (Order{3, 1, 2}));
}

TEST_F(PlacementTest, PoolsThatAreNamedAreAskedInTheOrderOfTheConfiguration) {
  const std::string text = "device_local|host_visible,device_local,host_cached,host_coherent";
  EXPECT_EQ(PoolsOf(text, MemoryKind::kDeviceLocal), (Order{0, 1}));
  EXPECT_EQ(PoolsOf(text, MemoryKind::kHostVisible), (Order{0, 2, 3}));
}

TEST_F(PlacementTest, EachKeyForEveryTypeIsAGroupOfItsOwn) {
  // Types 0 to 3 with a limit, then again without.
  EXPECT_EQ(PoolsOf("*=1mib,*", MemoryKind::kHostVisible), (Order{1, 3, 2, 5, 7, 6}));
}

TEST_F(PlacementTest, AKeyForEveryTypeIsNotSortedPastANamedPool) {
  EXPECT_EQ(PoolsOf("device_local|host_visible,*", MemoryKind::kHostVisible), (Order{0, 2, 4, 3}));
  EXPECT_EQ(PoolsOf("*,device_local|host_visible", MemoryKind::kHostVisible), (Order{1, 3, 2, 4}));
}

TEST_F(PlacementTest, OnlyTransientRequestsAskTransientPools) {
  const std::string text = "device_local|transient,device_local";
  EXPECT_EQ(PoolsOf(text, MemoryKind::kDeviceLocal), (Order{1}));
  EXPECT_EQ(PoolsOf(text, MemoryKind::kDeviceLocal, true), (Order{0, 1}));
}

TEST_F(PlacementTest, ListsTheTypesForWhatNoPoolServes) {
  const Placements placements(device_, Resolved("host_cached"));
  const auto found = placements.Find(MemoryKind::kDeviceLocal, std::nullopt, false);
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE((*found)->pools.empty());
  ASSERT_EQ((*found)->types.size(), 2u);
  EXPECT_EQ((*found)->types[0].memory_type, 0u);
  EXPECT_EQ((*found)->types[1].memory_type, 2u);
}

TEST_F(PlacementTest, WorksOutWhatMostRequestsAskForOnce) {
  const Placements placements(device_, Resolved(""));
  const auto once = placements.Find(MemoryKind::kHostVisible, std::nullopt, false);
  const auto again = placements.Find(MemoryKind::kHostVisible, std::nullopt, false);
  ASSERT_THAT(once, IsOk());
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*once, *again);
}

TEST_F(PlacementTest, TellsWhatTheDeviceDoesNotHave) {
  for (MemoryTypeInfo& type : device_.memory_types) type.host_visible = false;
  const Placements placements(device_, Resolved(""));
  EXPECT_THAT(placements.Find(MemoryKind::kHostVisible, std::nullopt, false),
              StatusIs(absl::StatusCode::kFailedPrecondition, "has no host_visible"));
  EXPECT_THAT(placements.Find(MemoryTypeIndex{4}, std::nullopt, false),
              StatusIs(absl::StatusCode::kInvalidArgument, "memory_type_index: is 4"));
}

}  // namespace
}  // namespace heapbroker

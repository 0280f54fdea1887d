// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_room.h"

#include <vector>

#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001};

// Two heaps with a memory type each, and a pool on each.
DeviceInfo TwoHeaps() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps = {{GiB(1), true}, {GiB(1), false}};
  info.memory_types.push_back(info.memory_types[0]);
  info.memory_types[1].heap = 1;
  return info;
}

class DeviceRoomTest : public ::testing::Test {
 protected:
  // Takes a block through the pool of its heap and makes it idle.
  void AddIdle(uint32_t heap, Bytes size) {
    ASSERT_TRUE(room_.TryTake(heap, size));
    const uint64_t id = ++last_;
    Block block{
        BlockId(id), kAlice, BlockClass{heap}, heap, {DeviceAllocationId(id), size, nullptr}, size};
    room_.pools().pool(heap).Reserve(size);
    room_.pools().pool(heap).Commit(size, block, size);
    room_.GiveBack({block, size}, absl::UnixEpoch(), effects_);
  }
  void FreeAll() {
    for (const Block& block : effects_.free) room_.Freed(block);
    effects_.free.clear();
  }

  const DeviceInfo device_ = TwoHeaps();
  const std::vector<HeapLimit> heaps_ = {HeapLimit{MiB(100), 1000}, HeapLimit{MiB(50)}};
  const std::vector<CountLimit> counts_ = {{LimitKind::kMaxAllocationCount, 9},
                                           {LimitKind::kDescriptors, 4}};
  Leases leases_;
  Segments segments_{0};
  DeviceRoom room_{
      device_, heaps_,
      counts_, std::vector<ResolvedPool>{{"a", 0, false, false, {}}, {"b", 1, false, false, {}}},
      leases_, segments_};
  Effects effects_;
  uint64_t last_ = 0;
};

TEST_F(DeviceRoomTest, TakesBytesAndAnAllocationOrNeither) {
  EXPECT_EQ(room_.count_limit().kind, LimitKind::kDescriptors) << "the lowest";
  EXPECT_FALSE(room_.TryTake(1, MiB(51)));
  EXPECT_EQ(room_.allocations(), 0u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(room_.TryTake(0, MiB(1)));
  EXPECT_FALSE(room_.TryTake(0, MiB(1)));
  EXPECT_EQ(room_.heap(0).in_use(), MiB(4));
  room_.Return(0, MiB(1));
  EXPECT_TRUE(room_.TryTake(1, MiB(50)));
}

TEST_F(DeviceRoomTest, ExchangesBytesForOneAllocationOrLeavesThemAsTheyAre) {
  ASSERT_TRUE(room_.TryTake(1, MiB(40)));
  EXPECT_FALSE(room_.Exchange(1, MiB(40), MiB(51)));
  EXPECT_EQ(room_.heap(1).in_use(), MiB(40));
  EXPECT_TRUE(room_.Exchange(1, MiB(40), MiB(50)));
  EXPECT_EQ(room_.heap(1).in_use(), MiB(50));
  EXPECT_EQ(room_.allocations(), 1u);
}

TEST_F(DeviceRoomTest, WhatIsIdleIsRoomButNotAtOnce) {
  AddIdle(0, MiB(60));
  EXPECT_EQ(room_.RoomNow(0), MiB(40));
  EXPECT_EQ(room_.RoomOn(0), MiB(100));
  EXPECT_EQ(room_.RoomOn(1), MiB(50)) << "another heap's is no room here";
  EXPECT_EQ(room_.AllocationRoom(), 4u);
  EXPECT_TRUE(room_.HasEvictable(0));
  EXPECT_FALSE(room_.HasEvictable(1));
}

TEST_F(DeviceRoomTest, EvictsForPromisesNoMoreThanTheyNeed) {
  AddIdle(0, MiB(30));
  AddIdle(0, MiB(30));
  AddIdle(0, MiB(30));
  room_.Promise(0, MiB(50));
  room_.EvictForPromises(effects_);
  EXPECT_EQ(effects_.free.size(), 2u) << "10 MiB were free";
  EXPECT_FALSE(room_.Redeem(0, MiB(50), MiB(50)));
  FreeAll();
  EXPECT_TRUE(room_.Redeem(0, MiB(50), MiB(50)));
  EXPECT_EQ(room_.freed(), 2u);
  EXPECT_EQ(room_.allocations(), 2u);
}

TEST_F(DeviceRoomTest, EvictsForAPromisedAllocationOnAnyHeap) {
  for (int i = 0; i < 4; ++i) AddIdle(1, MiB(1));
  room_.Promise(0, MiB(1));
  room_.EvictForPromises(effects_);
  EXPECT_EQ(effects_.free.size(), 1u);
  EXPECT_FALSE(room_.Redeem(0, MiB(1), MiB(1))) << "the allocation is not there yet";
  FreeAll();
  EXPECT_TRUE(room_.Redeem(0, MiB(1), MiB(1)));
}

TEST_F(DeviceRoomTest, APromiseCountsOnNothingThatIsClaimed) {
  AddIdle(0, MiB(60));
  room_.Promise(0, MiB(90));
  EXPECT_TRUE(room_.CanKeepPromisesOn(0));
  auto found = room_.pools().pool(0).Find(kAlice, BlockClass{0}, {MiB(60), MiB(60)});
  ASSERT_TRUE(std::holds_alternative<Claim>(found));
  EXPECT_FALSE(room_.CanKeepPromisesOn(0));
  EXPECT_TRUE(room_.CanKeepPromisesOn(1));
  room_.pools().pool(0).Unclaim(std::get<Claim>(found));
  EXPECT_TRUE(room_.CanKeepPromisesOn(0));
}

TEST_F(DeviceRoomTest, ABrokenPromiseLeavesItsAllocationToOthers) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(room_.TryTake(0, MiB(1)));
  room_.Promise(0, MiB(1));
  EXPECT_FALSE(room_.TryTake(0, MiB(1)));
  room_.BreakPromise(0, MiB(1));
  EXPECT_TRUE(room_.TryTake(0, MiB(1)));
}

TEST_F(DeviceRoomTest, EvictsWhereTheDriverOffersLessThanIsInUse) {
  AddIdle(0, MiB(40));
  AddIdle(0, MiB(40));
  AddIdle(1, MiB(40));
  room_.UpdateHeaps(std::vector<HeapReport>{{MiB(50), MiB(80)}, {MiB(1), MiB(1)}}, effects_);
  EXPECT_EQ(effects_.free.size(), 1u) << "a limit that was set is not the driver's business";
  EXPECT_TRUE(effects_.warnings.empty());
}

TEST_F(DeviceRoomTest, BytesAreFreeOnlyOnceTheDeviceHasFreedThem) {
  AddIdle(0, MiB(60));
  room_.EvictAllOn(0, effects_);
  EXPECT_EQ(room_.being_freed(), 1u);
  EXPECT_EQ(room_.RoomNow(0), MiB(40));
  EXPECT_EQ(room_.allocations(), 1u);
  FreeAll();
  EXPECT_EQ(room_.RoomNow(0), MiB(100));
  EXPECT_EQ(room_.allocations(), 0u);
}

TEST_F(DeviceRoomTest, TellsOfAnUnexpectedRefusalOfTheDriverOnceForASize) {
  const absl::Time now = absl::UnixEpoch();
  room_.NoteDriverRefusal(0, MiB(10), now, effects_);
  room_.NoteDriverRefusal(0, MiB(10), now, effects_);
  EXPECT_EQ(effects_.warnings.size(), 1u);
  room_.NoteDriverRefusal(0, MiB(5), now, effects_);
  EXPECT_EQ(effects_.warnings.size(), 2u);
}

}  // namespace
}  // namespace heapbroker

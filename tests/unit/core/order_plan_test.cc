// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/order_plan.h"

#include <memory>
#include <vector>

#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001};

// Device memory, a host-visible window into it on a heap of its own, host memory.
DeviceInfo Discrete() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps = {{GiB(1), true}, {GiB(1), true}, {GiB(1), false}};
  info.memory_types.assign(3, MemoryTypeInfo());
  for (uint32_t i = 0; i < 3; ++i) {
    info.memory_types[i].heap = i;
    info.memory_types[i].device_local = i < 2;
    info.memory_types[i].host_visible = info.memory_types[i].host_coherent = i > 0;
    info.memory_types[i].exportable.opaque_fd = true;
  }
  return info;
}

class OrderPlanTest : public ::testing::Test {
 protected:
  OrderPlanTest() : pools_(ResolvePools(*ParsePoolSpecs(""), device_).pools) {}

  Order OrderOf(MemoryKind kind, std::vector<Bytes> sizes) {
    Order order{OrderId(++last_), CallId(1), SessionId(1), kAlice, {}, {}, {}, {}, {}};
    for (Bytes size : sizes) {
      Want want;
      want.size = size;
      want.placement = *placements_.Find(kind, std::nullopt, false);
      order.wants.push_back(want);
    }
    return order;
  }
  std::variant<Plan, Refusal> Make(const Order& order) {
    return planner_.Make(order, [](uint32_t) { return Reserve(); });
  }
  Plan MustMake(const Order& order) {
    std::variant<Plan, Refusal> made = Make(order);
    EXPECT_TRUE(std::holds_alternative<Plan>(made));
    return std::holds_alternative<Plan>(made) ? std::get<Plan>(made) : Plan();
  }
  // Takes a block through the pool of its type and makes it idle.
  void AddIdle(uint32_t type, Bytes size) {
    ASSERT_TRUE(room_.TryTake(type, size));
    const uint64_t id = ++last_;
    Block block{
        BlockId(id), kAlice, BlockClass{type}, type, {DeviceAllocationId(id), size, nullptr}, size};
    room_.pools().pool(type).Reserve(size);
    room_.pools().pool(type).Commit(size, block, size);
    room_.GiveBack({block, size}, absl::UnixEpoch(), effects_);
  }
  void ExpectAsBefore(Bytes in_use) {
    EXPECT_EQ(room_.heap(0).in_use(), in_use);
    EXPECT_EQ(room_.heap(0).promised(), Bytes());
    EXPECT_EQ(room_.pools().pool(0).Stats().reserved, Bytes());
    EXPECT_EQ(room_.pools().pool(0).idle().claimed(), 0u);
  }

  const DeviceInfo device_ = Discrete();
  const std::vector<ResolvedPool> pools_;
  const std::vector<HeapLimit> heaps_ = {HeapLimit{MiB(100)}, HeapLimit{MiB(32)},
                                         HeapLimit{MiB(64)}};
  Leases leases_;
  Segments segments_{0};
  DeviceRoom room_{device_, heaps_, {}, pools_, leases_, segments_};
  const Placements placements_{device_, pools_};
  Planner planner_{device_, MatchingPolicy(), room_};
  Effects effects_;
  uint64_t last_ = 0;
};

TEST_F(OrderPlanTest, ReservesRoundedBytesOfAMissAndNothingForAHit) {
  AddIdle(0, MiB(8));
  const Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(8), MiB(17)});
  Plan plan = MustMake(order);
  ASSERT_EQ(plan.parts.size(), 2u);
  EXPECT_TRUE(plan.parts[0].is_hit());
  EXPECT_EQ(plan.parts[1].taken, MiB(18));
  EXPECT_EQ(plan.parts[1].exact, MiB(17));
  EXPECT_EQ(room_.heap(0).in_use(), MiB(26));
  planner_.Undo(plan);
  ExpectAsBefore(MiB(8));
}

TEST_F(OrderPlanTest, UsesALowerTierOnlyWhereTheHigherIsFullOfWhatIsHeld) {
  ASSERT_TRUE(room_.TryTake(0, MiB(60)));
  AddIdle(0, MiB(40));
  const Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(20)});
  Plan plan = MustMake(order);
  EXPECT_EQ(plan.parts[0].memory_type, 0u) << "rather waits for an eviction";
  EXPECT_EQ(plan.parts[0].promised, MiB(20));
  planner_.Undo(plan);
  ExpectAsBefore(MiB(100));
  const Order larger = OrderOf(MemoryKind::kDeviceLocal, {MiB(20), MiB(30)});
  plan = MustMake(larger);
  EXPECT_EQ(plan.parts[0].memory_type, 0u);
  EXPECT_EQ(plan.parts[1].memory_type, 1u);
  EXPECT_EQ(plan.parts[1].taken, MiB(30));
}

TEST_F(OrderPlanTest, ARefusalChangesNothing) {
  AddIdle(0, MiB(8));
  ASSERT_TRUE(room_.TryTake(0, MiB(50)));
  const Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(8), MiB(30), MiB(30), MiB(30)});
  EXPECT_TRUE(std::holds_alternative<Refusal>(Make(order)));
  ExpectAsBefore(MiB(58));
  EXPECT_EQ(room_.heap(1).in_use(), Bytes());
  EXPECT_TRUE(effects_.free.empty());
}

TEST_F(OrderPlanTest, DoesWithoutItsOwnIdleBlockWhereThatIsWhatTheOthersLack) {
  AddIdle(0, MiB(60));
  ASSERT_TRUE(room_.TryTake(0, MiB(26)));
  ASSERT_TRUE(room_.TryTake(1, MiB(32)));
  // 74 MiB in all: with the idle block only 14 MiB were left for the other.
  const Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(20), MiB(54)});
  Plan plan = MustMake(order);
  for (const Part& part : plan.parts) EXPECT_FALSE(part.is_hit());
  planner_.Take(order, plan, effects_);
  ASSERT_EQ(effects_.free.size(), 1u);
  room_.Freed(effects_.free[0]);
  EXPECT_TRUE(planner_.Redeem(plan, effects_));
  EXPECT_EQ(room_.heap(0).in_use(), MiB(100));
}

TEST_F(OrderPlanTest, PromisesNothingThatItsOwnHitWouldHaveToPayFor) {
  AddIdle(0, MiB(60));
  ASSERT_TRUE(room_.TryTake(0, MiB(28)));
  ASSERT_TRUE(room_.TryTake(1, MiB(32)));
  const Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(20), MiB(56)});
  std::variant<Plan, Refusal> made = Make(order);
  ASSERT_TRUE(std::holds_alternative<Refusal>(made));
  EXPECT_EQ(std::get<Refusal>(made).free, MiB(72).count());
  EXPECT_EQ(std::get<Refusal>(made).requested, MiB(76).count());
  ExpectAsBefore(MiB(88));
}

TEST_F(OrderPlanTest, LeavesWhatIsReservedForAnother) {
  const Order order = OrderOf(MemoryKind::kHostVisible, {MiB(20)});
  const auto all_but = [](Bytes kept) {
    return [kept](uint32_t heap) {
      return heap == 2 ? Reserve{false, kept, 1} : Reserve{true, Bytes(), 0};
    };
  };
  EXPECT_TRUE(std::holds_alternative<Refusal>(planner_.Make(order, all_but(MiB(45)))));
  std::variant<Plan, Refusal> made = planner_.Make(order, all_but(MiB(44)));
  ASSERT_TRUE(std::holds_alternative<Plan>(made));
  EXPECT_EQ(std::get<Plan>(made).parts[0].memory_type, 2u);
}

TEST_F(OrderPlanTest, IdleBlocksDoWhateverIsReservedForAnother) {
  AddIdle(0, MiB(8));
  const Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(8)});
  std::variant<Plan, Refusal> made =
      planner_.Make(order, [](uint32_t) { return Reserve{.all = true}; });
  ASSERT_TRUE(std::holds_alternative<Plan>(made));
  EXPECT_TRUE(std::get<Plan>(made).parts[0].is_hit());
}

TEST_F(OrderPlanTest, BlocksOfASegmentAreOfOneTypeAndNotOutOfAPool) {
  AddIdle(0, MiB(60));
  ASSERT_TRUE(room_.TryTake(0, MiB(30)));
  Order order = OrderOf(MemoryKind::kDeviceLocal, {MiB(16), MiB(16)});
  order.segment = SegmentId(1);
  for (Want& want : order.wants) want.fresh = true;
  Plan plan = MustMake(order);
  for (const Part& part : plan.parts) {
    EXPECT_FALSE(part.is_hit());
    EXPECT_EQ(part.memory_type, 0u);
    EXPECT_EQ(part.pool, room_.pools().direct());
  }
  planner_.Undo(plan);
  ASSERT_TRUE(room_.TryTake(0, MiB(10)));
  order.wants[0].size = MiB(61);
  EXPECT_TRUE(std::holds_alternative<Refusal>(Make(order)));
  ExpectAsBefore(MiB(100));
}

TEST_F(OrderPlanTest, NeverFitsOnlyWhereNoHeapsTogetherWould) {
  const auto fits = [&](MemoryKind kind, std::vector<Bytes> sizes) {
    return !planner_.NeverFits(OrderOf(kind, std::move(sizes))).has_value();
  };
  ASSERT_TRUE(room_.TryTake(0, MiB(100)));
  EXPECT_TRUE(fits(MemoryKind::kDeviceLocal, {MiB(100), MiB(32)}));
  EXPECT_FALSE(fits(MemoryKind::kDeviceLocal, {MiB(101)}));
  EXPECT_FALSE(fits(MemoryKind::kDeviceLocal, {MiB(100), MiB(33)}));
  EXPECT_FALSE(fits(MemoryKind::kDeviceLocalHostVisible, {MiB(16), MiB(17)}));
  EXPECT_FALSE(fits(MemoryKind::kHostVisible, {MiB(64), Bytes::Max()}));
}

}  // namespace
}  // namespace heapbroker

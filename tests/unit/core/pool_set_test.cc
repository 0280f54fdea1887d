// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/pool_set.h"

#include <set>
#include <string>
#include <vector>

#include "daemon/core/simulated_device.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

constexpr BlockClass kDevice{0}, kHost{1};

DeviceInfo TwoHeaps() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps.push_back({GiB(1), false});
  info.memory_types.push_back(info.memory_types[0]);
  info.memory_types[1].heap = 1;
  info.memory_types[1].device_local = false;
  return info;
}

// The set itself: what is evicted, and in which order.
class IdlePoolSetTest : public ::testing::Test {
 protected:
  // Makes a block of the pool idle; returns its id.
  uint64_t AddIdle(size_t pool, TenantId tenant, Bytes size, BlockClass block_class = kDevice) {
    const uint64_t id = ++last_;
    const Block block{
        BlockId(id), tenant, block_class, pool, {DeviceAllocationId(id), size, nullptr}, size};
    pools_.pool(pool).Reserve(size);
    pools_.pool(pool).Commit(size, block, size);
    EXPECT_TRUE(pools_.pool(pool)
                    .Release(block, size, id, absl::FromUnixSeconds(static_cast<int64_t>(id)))
                    .empty());
    return id;
  }
  // 0: none.
  static uint64_t IdOf(const std::optional<Block>& block) { return block ? block->id.value() : 0; }
  uint64_t EvictOne(std::optional<uint32_t> heap,
                    std::set<TenantId> with_session = {kAlice, kBob}) {
    return IdOf(pools_.EvictOne(
        heap, [&](TenantId tenant) { return with_session.contains(tenant); },
        NotKeptReason::kPressure));
  }

  DeviceInfo device_ = TwoHeaps();
  PoolSet pools_{device_,
                 {{"small", 0, false, false, {}},
                  {"large", 0, false, false, {}},
                  {"host", 1, false, false, {}}}};
  uint64_t last_ = 0;
};

TEST_F(IdlePoolSetTest, TheDirectRowIsTheLastAndKeepsNothing) {
  EXPECT_EQ(pools_.direct(), 3u);
  EXPECT_EQ(pools_.Stats().back().name, "direct");
  EXPECT_FALSE(pools_.Stats().back().memory_type.has_value());
  const Block block{BlockId(1), kAlice, kDevice, 3, {DeviceAllocationId(1), MiB(1), nullptr},
                    MiB(1)};
  pools_.pool(3).Reserve(MiB(1));
  pools_.pool(3).Commit(MiB(1), block, MiB(1));
  EXPECT_EQ(pools_.pool(3).Release(block, MiB(1), 1, absl::UnixEpoch()).size(), 1u);
  EXPECT_EQ(pools_.Stats().back().not_kept[static_cast<size_t>(NotKeptReason::kNeverCached)], 1u);
}

TEST_F(IdlePoolSetTest, EvictsTheOldestOfAllPoolsOfAHeap) {
  const uint64_t host = AddIdle(2, kAlice, MiB(1), kHost), first = AddIdle(1, kAlice, MiB(2)),
                 second = AddIdle(0, kBob, MiB(1)), third = AddIdle(1, kBob, MiB(4));
  EXPECT_EQ(pools_.IdleOn(0).bytes, MiB(7));
  EXPECT_EQ(pools_.IdleOn(0).blocks, 3u);
  for (uint64_t id : {first, second, third}) EXPECT_EQ(EvictOne(0), id);
  EXPECT_EQ(EvictOne(0), 0u);
  EXPECT_EQ(EvictOne(1), host);
}

TEST_F(IdlePoolSetTest, EvictsWhatBelongsToTenantsWithoutASessionFirst) {
  const TenantId gone(3), also_gone(4);
  const uint64_t old = AddIdle(0, kAlice, MiB(1)), orphan = AddIdle(1, gone, MiB(1)),
                 newer_orphan = AddIdle(0, also_gone, MiB(1)), newest = AddIdle(0, gone, MiB(1));
  for (uint64_t id : {orphan, newer_orphan, newest, old}) EXPECT_EQ(EvictOne(0), id);
}

TEST_F(IdlePoolSetTest, EvictsOfAllHeapsInOneOrder) {
  const TenantId gone(3);
  const uint64_t old = AddIdle(0, kAlice, MiB(1)), host = AddIdle(2, kAlice, MiB(1), kHost),
                 orphan = AddIdle(2, gone, MiB(1), kHost), newest = AddIdle(1, kBob, MiB(1));
  for (uint64_t id : {orphan, old, host, newest}) EXPECT_EQ(EvictOne(std::nullopt), id);
  EXPECT_EQ(EvictOne(std::nullopt), 0u);
}

TEST_F(IdlePoolSetTest, ClaimedBlocksCannotBeEvicted) {
  const uint64_t first = AddIdle(0, kAlice, MiB(1)), second = AddIdle(0, kAlice, MiB(2));
  auto found = pools_.pool(0).Find(kAlice, kDevice, {MiB(1), MiB(1)});
  ASSERT_TRUE(std::holds_alternative<Claim>(found));
  EXPECT_EQ(pools_.IdleOn(0).bytes, MiB(2));
  EXPECT_EQ(pools_.IdleOn(0).blocks, 1u);
  EXPECT_EQ(EvictOne(0, {}), second);
  EXPECT_EQ(EvictOne(0, {}), 0u);
  pools_.pool(0).Unclaim(std::get<Claim>(found));
  EXPECT_EQ(EvictOne(0, {}), first);
}

TEST_F(IdlePoolSetTest, TrimsTheOldestOfAllHeapsOrOfOnePool) {
  const uint64_t host = AddIdle(2, kAlice, MiB(1), kHost), first = AddIdle(1, kAlice, MiB(2)),
                 second = AddIdle(0, kBob, MiB(4));
  EXPECT_EQ(pools_.Retained(std::nullopt), MiB(7));
  EXPECT_EQ(pools_.Retained(1), MiB(2));
  EXPECT_EQ(IdOf(pools_.EvictOldest(0, NotKeptReason::kTrim)), second);
  EXPECT_EQ(IdOf(pools_.EvictOldest(0, NotKeptReason::kTrim)), 0u);
  EXPECT_EQ(IdOf(pools_.EvictOldest(std::nullopt, NotKeptReason::kTrim)), host);
  EXPECT_EQ(IdOf(pools_.EvictOldest(std::nullopt, NotKeptReason::kTrim)), first);
}

TEST_F(IdlePoolSetTest, KnowsSinceWhenTheOldestIsIdle) {
  EXPECT_EQ(pools_.OldestSince(), absl::InfiniteFuture());
  const uint64_t first = AddIdle(1, kAlice, MiB(2));
  AddIdle(0, kAlice, MiB(2));
  EXPECT_EQ(pools_.OldestSince(), absl::FromUnixSeconds(1));
  EXPECT_EQ(IdOf(pools_.EvictExpired(absl::UnixEpoch())), 0u);
  EXPECT_EQ(IdOf(pools_.EvictExpired(absl::FromUnixSeconds(1))), first);
  EXPECT_EQ(IdOf(pools_.EvictExpired(absl::FromUnixSeconds(1))), 0u);
}

TEST_F(IdlePoolSetTest, SaysWhichPoolsThereAre) {
  EXPECT_EQ(*pools_.Named("large"), 1u);
  EXPECT_EQ(*pools_.Named("direct"), 3u);
  EXPECT_THAT(pools_.Named("a\nb"),
              StatusIs(absl::StatusCode::kNotFound,
                       "has no pool \"a\\nb\"; it has \"small\", \"large\", \"host\", \"direct\""));
}

// The set as requests see it.
class PoolSetTest : public CoreTest {
 protected:
  void StartWith(absl::string_view pools) {
    LedgerOptions options;
    options.admission.pools = PoolsFor(pools, SimulatedDeviceInfo());
    Start(GiB(1), SimulatedDeviceInfo(), options);
    alice_ = NewSession(kAlice);
  }
  PoolStats At(size_t index) const { return broker_->Stats().pools.at(index); }

  SessionId alice_;
};

TEST_F(PoolSetTest, SendsARequestOverTheSizeLimitToTheNextPool) {
  StartWith("device_local=1mib,device_local=8mib,device_local=64mib");
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice_, MiB(1) + Bytes(1)));
  EXPECT_EQ(At(0).leased_blocks, 0u);
  EXPECT_EQ(At(0).misses[static_cast<size_t>(MissReason::kOverSizeLimit)], 1u);
  EXPECT_EQ(At(1).leased_blocks, 1u);
  EXPECT_EQ(At(2).requests, 0u) << "was not asked";
  ASSERT_THAT(Release(alice_, block.id), IsOk());
  EXPECT_EQ(At(1).idle_blocks, 1u);
}

TEST_F(PoolSetTest, SendsARequestOverTheCapacityToTheNextPool) {
  StartWith("device_local=*;8mib,device_local");
  ASSERT_THAT(Allocate(alice_, MiB(8)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice_, MiB(1)));
  EXPECT_EQ(At(0).leased, MiB(8));
  EXPECT_EQ(At(0).misses[static_cast<size_t>(MissReason::kAtCapacity)], 1u);
  EXPECT_EQ(At(1).leased, MiB(1));
  ASSERT_THAT(Release(alice_, block.id), IsOk());
  EXPECT_EQ(At(1).idle, MiB(1));
  CheckSums();
}

TEST_F(PoolSetTest, ServesFromTheSecondPoolOfATypeWhatTheFirstDoesNotTake) {
  StartWith("device_local=1mib,device_local");
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock small, Allocate(alice_, MiB(1)));
    ASSERT_OK_AND_ASSIGN(const GrantedBlock large, Allocate(alice_, MiB(2)));
    ASSERT_THAT(broker_->Release(alice_, {small.id, large.id}), IsOk());
  }
  EXPECT_EQ(At(0).hits, 1u);
  EXPECT_EQ(At(1).hits, 1u);
  EXPECT_EQ(device_->counts().allocations, 2u);
}

}  // namespace
}  // namespace heapbroker

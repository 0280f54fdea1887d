// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/caching_pool.h"

#include <optional>
#include <variant>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001};
constexpr TenantId kBob{1002};
constexpr BlockClass kClass{0};

class CachingPoolTest : public ::testing::Test {
 protected:
  static CachingPool PoolKeeping(uint64_t blocks) {
    PoolLimits limits;
    limits.max_free_allocation_count = blocks;
    return PoolWith(limits);
  }
  static CachingPool PoolWith(const PoolLimits& limits) {
    return CachingPool({"test", 0, false, false, limits}, 0);
  }

  Block New(TenantId tenant, Bytes size) {
    const DeviceAllocation memory{DeviceAllocationId(++last_id_), size, nullptr};
    Block block{BlockId(last_id_), tenant, kClass, 0, memory, size};
    pool_.Reserve(size);
    pool_.Commit(size, block, size);
    return block;
  }
  Evictions Release(Block block) {
    const Bytes size = block.bytes();
    return pool_.Release(std::move(block), size, ++last_stamp_, absl::UnixEpoch());
  }
  // The id of what serves, or why nothing does.
  std::variant<BlockId, MissReason> Acquire(TenantId tenant, Bytes size, Bytes largest) {
    auto found = pool_.Find(tenant, kClass, {size, largest});
    if (auto* hit = std::get_if<Claim>(&found)) return pool_.Take(*hit, size).id;
    return std::get<MissReason>(found);
  }

  CachingPool pool_ = PoolKeeping(64);
  uint64_t last_id_ = 0;
  ReleaseStamp last_stamp_ = 0;
};

using Answer = std::variant<BlockId, MissReason>;

TEST_F(CachingPoolTest, ServesTheSmallestBlockThatFits) {
  const Block small = New(kAlice, MiB(1)), middle = New(kAlice, MiB(2)),
              large = New(kAlice, MiB(4));
  for (const Block& block : {large, small, middle}) EXPECT_TRUE(Release(block).empty());
  EXPECT_EQ(Acquire(kAlice, KiB(1500), MiB(8)), Answer(middle.id));
  EXPECT_EQ(Acquire(kAlice, KiB(1500), MiB(8)), Answer(large.id));
  EXPECT_EQ(Acquire(kAlice, KiB(1500), MiB(8)), Answer(MissReason::kOnlyTooSmall));
}

TEST_F(CachingPoolTest, ServesTheBlockReleasedLastAmongEquals) {
  const Block first = New(kAlice, MiB(1)), second = New(kAlice, MiB(1));
  EXPECT_TRUE(Release(first).empty());
  EXPECT_TRUE(Release(second).empty());
  EXPECT_EQ(Acquire(kAlice, MiB(1), MiB(1)), Answer(second.id));
}

TEST_F(CachingPoolTest, NeverGivesATenantsBlockToAnother) {
  EXPECT_TRUE(Release(New(kAlice, MiB(1))).empty());
  EXPECT_EQ(Acquire(kBob, MiB(1), MiB(1)), Answer(MissReason::kOtherTenantsOnly));
}

TEST_F(CachingPoolTest, GivesNoBlockThatIsTooLargeForTheRequest) {
  EXPECT_TRUE(Release(New(kAlice, MiB(64))).empty());
  EXPECT_EQ(Acquire(kAlice, MiB(1), MiB(2)), Answer(MissReason::kOnlyTooLarge));
}

TEST_F(CachingPoolTest, SaysThatNothingIsIdle) {
  EXPECT_EQ(Acquire(kAlice, MiB(1), MiB(2)), Answer(MissReason::kNoIdleBlock));
}

TEST_F(CachingPoolTest, FreesOlderBlocksSoThatTheNewestIsKept) {
  pool_ = PoolKeeping(2);
  const Block first = New(kAlice, MiB(1)), second = New(kAlice, MiB(1)),
              third = New(kAlice, MiB(1));
  EXPECT_TRUE(Release(first).empty());
  EXPECT_TRUE(Release(second).empty());
  const Evictions evicted = Release(third);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].id, first.id);
  EXPECT_EQ(pool_.Stats().not_kept[static_cast<size_t>(NotKeptReason::kCount)], 1u);
}

TEST_F(CachingPoolTest, KeepsNothingWhereTheCountIsZero) {
  pool_ = PoolKeeping(0);
  const Block block = New(kAlice, MiB(1));
  ASSERT_EQ(Release(block).size(), 1u);
  EXPECT_EQ(pool_.Stats().idle, Bytes());
  EXPECT_EQ(pool_.Stats().being_freed, MiB(1));
  pool_.Freed(MiB(1));
  EXPECT_EQ(pool_.Stats().total(), Bytes());
}

TEST_F(CachingPoolTest, BooksEachByteInExactlyOnePlace) {
  const Block block = New(kAlice, MiB(3));
  EXPECT_EQ(pool_.Stats().leased, MiB(3));
  EXPECT_TRUE(Release(block).empty());
  EXPECT_EQ(pool_.Stats().idle, MiB(3));
  EXPECT_EQ(pool_.Stats().largest_idle_block, MiB(3));
  const Block evicted = pool_.EvictOldest(NotKeptReason::kPressure);
  EXPECT_EQ(pool_.Stats().being_freed, MiB(3));
  pool_.Freed(evicted.bytes());
  const PoolStats stats = pool_.Stats();
  EXPECT_EQ(stats.total(), Bytes());
  EXPECT_EQ(stats.peak_leased, MiB(3));
  EXPECT_EQ(stats.peak_idle, MiB(3));
}

TEST_F(CachingPoolTest, UndoingAHitRestoresTheBlocksAge) {
  const Block old = New(kAlice, MiB(1)), young = New(kAlice, MiB(2));
  EXPECT_TRUE(Release(old).empty());
  EXPECT_TRUE(Release(young).empty());
  auto hit = pool_.Find(kAlice, kClass, {MiB(1), MiB(1)});
  ASSERT_TRUE(std::holds_alternative<Claim>(hit));
  EXPECT_EQ(Acquire(kAlice, MiB(1), MiB(1)), Answer(MissReason::kOnlyTooLarge)) << "is claimed";
  pool_.Unclaim(std::get<Claim>(hit));
  EXPECT_EQ(pool_.EvictOldest(NotKeptReason::kPressure).id, old.id);
}

TEST_F(CachingPoolTest, TrimsTheOldestFirst) {
  const Block first = New(kAlice, MiB(1)), second = New(kBob, MiB(4)), third = New(kAlice, MiB(2));
  for (const Block& block : {second, first, third}) EXPECT_TRUE(Release(block).empty());
  for (const Block& block : {second, first, third}) {
    EXPECT_EQ(pool_.EvictOldest(NotKeptReason::kTrim).id, block.id);
  }
  EXPECT_EQ(pool_.Stats().not_kept[static_cast<size_t>(NotKeptReason::kTrim)], 3u);
}

TEST_F(CachingPoolTest, HoldsWhatFitsAfterEvictingWhatIsIdle) {
  PoolLimits limits;
  limits.max_allocation_capacity = MiB(10);
  pool_ = PoolWith(limits);
  const Block idle = New(kBob, MiB(6)), leased = New(kAlice, MiB(3));
  EXPECT_TRUE(Release(idle).empty());
  EXPECT_TRUE(pool_.CanHold(MiB(7)));
  EXPECT_FALSE(pool_.CanHold(MiB(7) + Bytes(1)));
  EXPECT_FALSE(pool_.CanHold(Bytes::Max()));
  pool_.Reserve(MiB(7));
  const Evictions evicted = pool_.EvictOverCapacity();
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].id, idle.id);
  EXPECT_FALSE(pool_.CanHold(Bytes(1))) << "reserved bytes count";
  pool_.Cancel(MiB(7));
  EXPECT_TRUE(pool_.CanHold(MiB(7)));
  EXPECT_EQ(pool_.leased(), leased.bytes());
}

TEST_F(CachingPoolTest, AClaimedBlockIsNotEvictedForCapacity) {
  PoolLimits limits;
  limits.max_allocation_capacity = MiB(10);
  pool_ = PoolWith(limits);
  EXPECT_TRUE(Release(New(kAlice, MiB(6))).empty());
  auto found = pool_.Find(kAlice, kClass, {MiB(6), MiB(6)});
  ASSERT_TRUE(std::holds_alternative<Claim>(found));
  EXPECT_FALSE(pool_.CanHold(MiB(5)));
  EXPECT_TRUE(pool_.CanHold(MiB(4)));
  EXPECT_EQ(pool_.Take(std::get<Claim>(found), MiB(6)).bytes(), MiB(6));
}

TEST_F(CachingPoolTest, FreesOlderBlocksForCapacitySoThatTheNewestIsKept) {
  PoolLimits limits;
  limits.max_allocation_capacity = MiB(10);
  pool_ = PoolWith(limits);
  const Block old = New(kBob, MiB(4)), newer = New(kAlice, MiB(6));
  EXPECT_TRUE(Release(old).empty());
  // A driver pads: what comes back is more than was reserved.
  pool_.Reserve(MiB(1));
  const Evictions evicted = Release(newer);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].id, old.id);
  EXPECT_EQ(pool_.Stats().idle, MiB(6));
  EXPECT_EQ(pool_.Stats().not_kept[static_cast<size_t>(NotKeptReason::kCapacity)], 1u);
}

TEST_F(CachingPoolTest, ABlockThatDoesNotFitByItselfDrivesNothingOut) {
  PoolLimits limits;
  limits.max_allocation_capacity = MiB(10);
  pool_ = PoolWith(limits);
  const Block old = New(kBob, MiB(4));
  EXPECT_TRUE(Release(old).empty());
  const Block padded = New(kAlice, MiB(11));
  const Evictions evicted = Release(padded);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].id, padded.id);
  EXPECT_EQ(pool_.Stats().idle, MiB(4));
}

TEST_F(CachingPoolTest, CountsRequestsHitsAndWhyThereWereMisses) {
  pool_.CountRequest(std::nullopt);
  pool_.CountRequest(MissReason::kAtCapacity);
  pool_.CountRequest(MissReason::kAtCapacity);
  const PoolStats stats = pool_.Stats();
  EXPECT_EQ(stats.requests, 3u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses[static_cast<size_t>(MissReason::kAtCapacity)], 2u);
  EXPECT_EQ(stats.total_misses(), 2u);
}

}  // namespace
}  // namespace heapbroker

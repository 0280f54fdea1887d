// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/idle_blocks.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001}, kBob{1002};
constexpr BlockClass kClass{0}, kOtherClass{1};

class IdleBlocksTest : public ::testing::Test {
 protected:
  // Returns its id.
  uint64_t Add(TenantId tenant, Bytes size, BlockClass block_class = kClass,
               Bytes padding = Bytes()) {
    const uint64_t id = ++last_id_;
    const DeviceAllocation memory{DeviceAllocationId(id), size + padding, nullptr};
    idle_.Add({BlockId(id), tenant, block_class, 0, memory, size}, id,
              absl::FromUnixSeconds(static_cast<int64_t>(id)));
    return id;
  }
  std::optional<Claim> Find(TenantId tenant, Bytes smallest, Bytes largest) {
    return idle_.ClaimBestFit(tenant, kClass, {smallest, largest});
  }
  // 0: none.
  uint64_t Take(TenantId tenant, Bytes smallest, Bytes largest) {
    const std::optional<Claim> claim = Find(tenant, smallest, largest);
    return claim ? idle_.Take(*claim).id.value() : 0;
  }

  IdleBlocks idle_;
  uint64_t last_id_ = 0;
};

TEST_F(IdleBlocksTest, FindsTheSmallestInTheRangeBothEndsIncluded) {
  const uint64_t small = Add(kAlice, MiB(1)), large = Add(kAlice, MiB(4));
  EXPECT_EQ(Take(kAlice, MiB(1) + Bytes(1), MiB(4) - Bytes(1)), 0u);
  EXPECT_EQ(Take(kAlice, MiB(2), MiB(4)), large);
  EXPECT_EQ(Take(kAlice, MiB(1), MiB(1)), small);
  EXPECT_EQ(idle_.size(), 0u);
  EXPECT_EQ(idle_.bytes(), Bytes());
}

TEST_F(IdleBlocksTest, FindsByWhatABlockWasMadeForAndCountsWhatItHas) {
  const uint64_t id = Add(kAlice, MiB(1), kClass, Bytes(64));
  EXPECT_EQ(idle_.bytes(), MiB(1) + Bytes(64));
  EXPECT_EQ(idle_.largest(), MiB(1) + Bytes(64));
  EXPECT_FALSE(idle_.HoldsAtLeast(kAlice, kClass, MiB(1) + Bytes(1)));
  EXPECT_EQ(Take(kAlice, MiB(1) + Bytes(1), MiB(2)), 0u);
  EXPECT_EQ(Take(kAlice, MiB(1), MiB(1)), id);
  EXPECT_EQ(idle_.bytes(), Bytes());
}

TEST_F(IdleBlocksTest, FindsTheNewestAmongEquals) {
  const uint64_t first = Add(kAlice, MiB(1)), second = Add(kAlice, MiB(1)),
                 third = Add(kAlice, MiB(1));
  for (uint64_t id : {third, second, first}) EXPECT_EQ(Take(kAlice, MiB(1), MiB(1)), id);
}

TEST_F(IdleBlocksTest, KeepsTenantsAndClassesApart) {
  Add(kBob, MiB(1));
  Add(kAlice, MiB(1), kOtherClass);
  EXPECT_EQ(Take(kAlice, Bytes(1), Bytes::Max()), 0u);
  EXPECT_FALSE(idle_.Holds(kAlice, kClass));
  EXPECT_TRUE(idle_.Holds(kAlice, kOtherClass));
  EXPECT_TRUE(idle_.OthersHold(kAlice, kClass));
  EXPECT_FALSE(idle_.OthersHold(kAlice, kOtherClass));
  EXPECT_TRUE(idle_.OthersHold(kBob, kOtherClass));
  EXPECT_EQ(idle_.Tenants(), (std::vector<TenantId>{kAlice, kBob}));
}

TEST_F(IdleBlocksTest, AClaimedBlockIsNeitherFoundNorTheOldestButStillCounted) {
  const uint64_t first = Add(kAlice, MiB(1)), second = Add(kAlice, MiB(2));
  const std::optional<Claim> claim = Find(kAlice, MiB(1), MiB(1));
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(idle_.block(*claim).id.value(), first);
  EXPECT_FALSE(Find(kAlice, MiB(1), MiB(1)).has_value());
  EXPECT_EQ(idle_.Oldest()->stamp, second);
  EXPECT_EQ(idle_.Oldest(kAlice)->stamp, second);
  EXPECT_EQ(idle_.size(), 2u);
  EXPECT_EQ(idle_.bytes(), MiB(3));
  EXPECT_EQ(idle_.claimed(), 1u);
  EXPECT_EQ(idle_.claimed_bytes(), MiB(1));
  EXPECT_EQ(idle_.TakeOldest().id.value(), second);
  EXPECT_FALSE(idle_.Oldest().has_value());
  EXPECT_EQ(idle_.Take(*claim).id.value(), first);
  EXPECT_EQ(idle_.claimed(), 0u);
}

TEST_F(IdleBlocksTest, UnclaimingInTheReverseOrderLeavesNoTrace) {
  const uint64_t first = Add(kAlice, MiB(1)), second = Add(kAlice, MiB(1)),
                 third = Add(kAlice, MiB(1));
  const Claim newest = *Find(kAlice, MiB(1), MiB(1)), middle = *Find(kAlice, MiB(1), MiB(1));
  idle_.Unclaim(middle);
  idle_.Unclaim(newest);
  EXPECT_EQ(idle_.Oldest()->stamp, first);
  for (uint64_t id : {third, second, first}) EXPECT_EQ(Take(kAlice, MiB(1), MiB(1)), id);
}

TEST_F(IdleBlocksTest, TakesTheOldestOfAllOrOfATenant) {
  const uint64_t first = Add(kAlice, MiB(4)), second = Add(kBob, MiB(2)), third = Add(kBob, MiB(1));
  EXPECT_EQ(idle_.Oldest()->since(), absl::FromUnixSeconds(1));
  EXPECT_EQ(idle_.TakeOldest(kBob).id.value(), second);
  EXPECT_EQ(idle_.TakeOldest().id.value(), first);
  EXPECT_FALSE(idle_.Oldest(kAlice).has_value());
  EXPECT_EQ(idle_.TakeOldest().id.value(), third);
  EXPECT_TRUE(idle_.Tenants().empty());
}

TEST_F(IdleBlocksTest, KnowsTheLargestOfAllTenantsAndClasses) {
  EXPECT_EQ(idle_.largest(), Bytes());
  Add(kAlice, MiB(2));
  Add(kAlice, MiB(9), kOtherClass);
  Add(kBob, MiB(5));
  EXPECT_EQ(idle_.largest(), MiB(9));
  idle_.TakeOldest(kAlice);
  idle_.TakeOldest(kAlice);
  EXPECT_EQ(idle_.largest(), MiB(5));
}

TEST_F(IdleBlocksTest, UsesPlacesAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> ids;
    for (uint64_t i = 1; i <= 5; ++i) ids.push_back(Add(kAlice, MiB(i)));
    EXPECT_EQ(Take(kAlice, MiB(3), MiB(3)), ids[2]);
    for (size_t i : {0, 1, 3, 4}) EXPECT_EQ(idle_.TakeOldest().id.value(), ids[i]);
  }
}

// Against the simplest thing that could be right: a list, searched from end to end.
TEST_F(IdleBlocksTest, AgreesWithAListWhateverIsDone) {
  struct Plain {
    uint64_t id;
    TenantId tenant;
    Bytes size;
  };
  std::deque<Plain> list;
  std::mt19937 random(1);
  const auto draw = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  for (int i = 0; i < 20000; ++i) {
    const TenantId tenant = draw(2) == 0 ? kAlice : kBob;
    const uint32_t what = draw(10);
    if (what < 5) {
      const Bytes size = MiB(1 + draw(6));
      list.push_back({Add(tenant, size), tenant, size});
    } else if (what < 8) {
      const Bytes smallest = MiB(1 + draw(6)), largest = smallest + MiB(draw(3));
      auto best = list.end();
      for (auto it = list.begin(); it != list.end(); ++it) {
        if (it->tenant != tenant || it->size < smallest || it->size > largest) continue;
        if (best == list.end() || it->size <= best->size) best = it;
      }
      const uint64_t expected = best == list.end() ? 0 : best->id;
      if (best != list.end()) list.erase(best);
      ASSERT_EQ(Take(tenant, smallest, largest), expected);
    } else {
      const bool any = what == 8;
      const auto oldest = std::find_if(list.begin(), list.end(), [&](const Plain& block) {
        return any || block.tenant == tenant;
      });
      const auto age = any ? idle_.Oldest() : idle_.Oldest(tenant);
      ASSERT_EQ(age.has_value(), oldest != list.end());
      if (!age) continue;
      const Block taken = any ? idle_.TakeOldest() : idle_.TakeOldest(tenant);
      ASSERT_EQ(taken.id.value(), oldest->id);
      list.erase(oldest);
    }
    ASSERT_EQ(idle_.size(), list.size());
  }
}

}  // namespace
}  // namespace heapbroker

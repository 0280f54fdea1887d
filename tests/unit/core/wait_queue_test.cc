// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/wait_queue.h"

#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001}, kBob{1002}, kCarol{1003};
constexpr absl::Duration kTimeout = absl::Seconds(5);

class WaitQueueTest : public ::testing::Test {
 protected:
  void Add(uint64_t order, TenantId tenant, Priority priority = Priority::kNormal) {
    queue_.Add(OrderId(order), tenant, priority);
  }
  void Remove(uint64_t order, TenantId tenant, Priority priority = Priority::kNormal) {
    queue_.Remove(OrderId(order), tenant, priority);
  }
  // 0: nobody.
  uint64_t Head() { return queue_.Head(now_, elections_).value_or(OrderId()).value(); }
  // Whose turn it is when that of the head is over.
  uint64_t NextHead() {
    now_ += kTimeout;
    return Head();
  }
  std::vector<uint64_t> Resting() const {
    std::vector<uint64_t> orders;
    for (OrderId order : queue_.Resting(10)) orders.push_back(order.value());
    return orders;
  }
  std::vector<uint64_t> Of(TenantId tenant, size_t most) const {
    std::vector<uint64_t> orders;
    for (OrderId order : queue_.Of(tenant, most)) orders.push_back(order.value());
    return orders;
  }

  absl::Time now_ = absl::UnixEpoch();
  uint64_t elections_ = 0;
  WaitQueue queue_{kTimeout};
};

TEST_F(WaitQueueTest, HasNoHeadWhereNobodyWaits) {
  EXPECT_EQ(Head(), 0u);
  Add(1, kAlice);
  Remove(1, kAlice);
  EXPECT_EQ(Head(), 0u);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(WaitQueueTest, ElectsOnlyWhenAsked) {
  Add(1, kAlice);
  EXPECT_EQ(queue_.NextChange(), absl::InfiniteFuture());
  now_ += absl::Seconds(3);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(queue_.NextChange(), now_ + kTimeout);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(queue_.NextChange(), now_ + kTimeout - absl::Seconds(1)) << "since it was elected";
}

TEST_F(WaitQueueTest, CountsTheElectionsOfAllQueues) {
  WaitQueue other(kTimeout);
  other.Add(OrderId(7), kBob, Priority::kNormal);
  Add(1, kAlice);
  Add(2, kAlice);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(other.Head(now_, elections_), OrderId(7));
  EXPECT_LT(queue_.election(), other.election());
  Remove(1, kAlice);
  EXPECT_EQ(Head(), 2u);
  EXPECT_GT(queue_.election(), other.election());
}

TEST_F(WaitQueueTest, TheHeadStaysWhoeverComes) {
  Add(1, kAlice, Priority::kLow);
  EXPECT_EQ(Head(), 1u);
  Add(2, kAlice, Priority::kHigh);
  Add(3, kBob);
  EXPECT_EQ(Head(), 1u);
}

TEST_F(WaitQueueTest, TenantsTakeTurns) {
  for (uint64_t order : {1, 2, 3}) Add(order, kAlice);
  for (uint64_t order : {4, 5}) Add(order, kBob);
  std::vector<uint64_t> heads;
  while (!queue_.empty()) {
    heads.push_back(Head());
    Remove(heads.back(), heads.back() <= 3 ? kAlice : kBob);
  }
  EXPECT_EQ(heads, (std::vector<uint64_t>{1, 4, 2, 5, 3}));
}

TEST_F(WaitQueueTest, ATenantThatComesAgainGoesBehindTheOthers) {
  Add(1, kAlice);
  Add(2, kBob);
  EXPECT_EQ(Head(), 1u);
  Remove(1, kAlice);
  Add(3, kAlice);
  Add(4, kCarol);
  EXPECT_EQ(Head(), 2u);
  Remove(2, kBob);
  EXPECT_EQ(Head(), 3u);
}

TEST_F(WaitQueueTest, RemovingOneThatIsNotTheHeadEndsNoTurn) {
  Add(1, kAlice);
  Add(2, kAlice);
  Add(3, kBob);
  EXPECT_EQ(Head(), 1u);
  Remove(2, kAlice);
  Remove(3, kBob);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(WaitQueueTest, ServesThreePrioritiesInsideATenant) {
  Add(1, kAlice, Priority::kLow);
  Add(2, kAlice, Priority::kNormal);
  Add(3, kAlice, Priority::kHigh);
  Add(4, kAlice, Priority::kHigh);
  EXPECT_EQ(Of(kAlice, 10), (std::vector<uint64_t>{3, 4, 2, 1}));
  EXPECT_EQ(Of(kAlice, 2), (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(Of(kBob, 2), (std::vector<uint64_t>{}));
  EXPECT_EQ(Head(), 3u);
}

TEST_F(WaitQueueTest, WhoseTimeIsUpGoesBehindItsTenantsOthersWhateverTheirPriority) {
  Add(1, kAlice, Priority::kHigh);
  Add(2, kAlice, Priority::kLow);
  Add(3, kBob);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(NextHead(), 3u);
  EXPECT_EQ(NextHead(), 2u);
  EXPECT_EQ(Of(kAlice, 10), (std::vector<uint64_t>{2, 1}));
}

TEST_F(WaitQueueTest, WhenAllHaveHadATurnInVainItIsNobodysForAsLongAndThenTheyBeginAnew) {
  Add(1, kAlice);
  Add(2, kBob);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(Head(), 1u);
    EXPECT_EQ(NextHead(), 2u);
    EXPECT_EQ(NextHead(), 0u);
    EXPECT_EQ(Resting(), (std::vector<uint64_t>{1, 2}));
    EXPECT_EQ(queue_.NextChange(), now_ + kTimeout);
    now_ += kTimeout;
  }
}

TEST_F(WaitQueueTest, WhoComesWhileOthersRestHasItsTurnAtOnce) {
  Add(1, kAlice);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(NextHead(), 0u);
  now_ += absl::Seconds(1);
  Add(2, kBob);
  EXPECT_EQ(Head(), 2u);
  // The rest ends meanwhile.
  EXPECT_EQ(NextHead(), 1u);
}

TEST_F(WaitQueueTest, ManyThatComeLaterDoNotKeepOneThatRestsFromItsNextTurn) {
  Add(1, kAlice);
  EXPECT_EQ(Head(), 1u);
  now_ += kTimeout;
  uint64_t order = 2;
  for (; Head() != 1u && order < 100; ++order) {
    Add(order, order % 2 == 0 ? kBob : kCarol);
    Add(1000 + order, kBob);
    now_ += absl::Seconds(1);
    const uint64_t head = Head();
    if (head > 1) Remove(head, head < 1000 && head % 2 != 0 ? kCarol : kBob);
  }
  EXPECT_LT(order, 12u) << "five seconds, and the turns of two tenants";
}

TEST_F(WaitQueueTest, OneThatRestsMayLeave) {
  Add(1, kAlice);
  Add(2, kAlice);
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(NextHead(), 2u);
  Remove(1, kAlice);
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_EQ(NextHead(), 0u);
  Remove(2, kAlice);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.NextChange(), absl::InfiniteFuture());
  EXPECT_EQ(NextHead(), 0u);
}

TEST_F(WaitQueueTest, OneWhoseTimeIsUpMayStandBehindALaterOneOfAHigherPriority) {
  Add(1, kAlice, Priority::kLow);
  Add(2, kAlice, Priority::kLow);
  EXPECT_EQ(Head(), 1u);
  Add(3, kAlice, Priority::kHigh);
  EXPECT_EQ(NextHead(), 3u);
  EXPECT_EQ(Of(kAlice, 10), (std::vector<uint64_t>{3, 2, 1}));
}

}  // namespace
}  // namespace heapbroker

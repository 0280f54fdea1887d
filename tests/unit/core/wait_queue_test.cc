// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/wait_queue.h"

#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr TenantId kAlice{1001}, kBob{1002}, kCarol{1003};
constexpr absl::Time kNow = absl::UnixEpoch();

class WaitQueueTest : public ::testing::Test {
 protected:
  void Add(uint64_t order, TenantId tenant, Priority priority = Priority::kNormal) {
    queue_.Add(OrderId(order), tenant, priority);
  }
  void Remove(uint64_t order, TenantId tenant, Priority priority = Priority::kNormal) {
    queue_.Remove(OrderId(order), tenant, priority);
  }
  // 0: nobody.
  uint64_t Head() { return queue_.Head(kNow).value_or(OrderId()).value(); }
  std::vector<uint64_t> Of(TenantId tenant, size_t most) const {
    std::vector<uint64_t> orders;
    for (OrderId order : queue_.Of(tenant, most)) orders.push_back(order.value());
    return orders;
  }

  WaitQueue queue_;
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
  EXPECT_FALSE(queue_.elected().has_value());
  EXPECT_EQ(queue_.Head(kNow + absl::Seconds(3)), OrderId(1));
  EXPECT_EQ(queue_.elected(), OrderId(1));
  EXPECT_EQ(queue_.elected_at(), kNow + absl::Seconds(3));
  EXPECT_EQ(Head(), 1u);
  EXPECT_EQ(queue_.elected_at(), kNow + absl::Seconds(3)) << "since it was elected";
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
  EXPECT_EQ(queue_.elected(), OrderId(1));
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

TEST_F(WaitQueueTest, RotatingSendsTheHeadBehindItsTenantsOthersAndEndsTheTurn) {
  Add(1, kAlice);
  Add(2, kAlice);
  Add(3, kBob);
  EXPECT_EQ(Head(), 1u);
  queue_.Rotate();
  EXPECT_EQ(Head(), 3u);
  queue_.Rotate();
  EXPECT_EQ(Head(), 2u);
  EXPECT_EQ(Of(kAlice, 10), (std::vector<uint64_t>{2, 1}));
}

TEST_F(WaitQueueTest, RotatingFindsTheHeadAlsoBehindALaterOneOfAHigherPriority) {
  Add(1, kAlice, Priority::kLow);
  Add(2, kAlice, Priority::kLow);
  EXPECT_EQ(Head(), 1u);
  Add(3, kAlice, Priority::kHigh);
  queue_.Rotate();
  EXPECT_EQ(Of(kAlice, 10), (std::vector<uint64_t>{3, 2, 1}));
  EXPECT_EQ(Head(), 3u);
}

}  // namespace
}  // namespace heapbroker

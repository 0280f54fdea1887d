// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/heap_budget.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;

class HeapBudgetTest : public ::testing::Test {
 protected:
  HeapBudget budget_{HeapLimit{MiB(100)}, HeapInfo{GiB(1), true}};
  HeapBudget driven_{HeapLimit{MiB(100), 500}, HeapInfo{GiB(1), true}};
};

TEST_F(HeapBudgetTest, TakesAllOrNothing) {
  EXPECT_TRUE(budget_.TryTake(MiB(60)));
  EXPECT_FALSE(budget_.TryTake(MiB(41)));
  EXPECT_EQ(budget_.in_use(), MiB(60));
  EXPECT_TRUE(budget_.TryTake(MiB(40)));
  EXPECT_EQ(budget_.available(), Bytes());
  EXPECT_FALSE(budget_.TryTake(Bytes(1)));
  EXPECT_FALSE(budget_.TryTake(Bytes::Max()));
  budget_.Return(MiB(100));
  EXPECT_EQ(budget_.Stats().peak_in_use, MiB(100));
}

TEST_F(HeapBudgetTest, BytesAreInUseUntilTheyHaveBeenFreed) {
  ASSERT_TRUE(budget_.TryTake(MiB(80)));
  budget_.StartFreeing(MiB(80));
  EXPECT_EQ(budget_.available(), MiB(20));
  EXPECT_EQ(budget_.uncommitted(), MiB(100)) << "will be there";
  EXPECT_FALSE(budget_.TryTake(MiB(21)));
  budget_.Freed(MiB(80));
  EXPECT_TRUE(budget_.TryTake(MiB(100)));
}

TEST_F(HeapBudgetTest, NobodyTakesWhatIsPromised) {
  ASSERT_TRUE(budget_.TryTake(MiB(80)));
  budget_.StartFreeing(MiB(80));
  budget_.Promise(MiB(90));
  EXPECT_EQ(budget_.uncommitted(), MiB(10));
  EXPECT_FALSE(budget_.TryTake(MiB(11)));
  EXPECT_TRUE(budget_.TryTake(MiB(10)));
  EXPECT_FALSE(budget_.Redeem(MiB(90), MiB(90))) << "is not there yet";
  budget_.Freed(MiB(80));
  EXPECT_FALSE(budget_.TryTake(Bytes(1)));
  EXPECT_TRUE(budget_.Redeem(MiB(90), MiB(90)));
  EXPECT_EQ(budget_.promised(), Bytes());
  EXPECT_EQ(budget_.in_use(), MiB(100));
}

TEST_F(HeapBudgetTest, MoreThanWasPromisedDoesNotComeOutOfOtherPromises) {
  budget_.Promise(MiB(40));
  budget_.Promise(MiB(50));
  EXPECT_FALSE(budget_.Redeem(MiB(40), MiB(51)));
  EXPECT_TRUE(budget_.Redeem(MiB(40), MiB(50)));
  EXPECT_TRUE(budget_.Redeem(MiB(50), MiB(50)));
}

TEST_F(HeapBudgetTest, ABrokenPromiseIsFreeAgain) {
  budget_.Promise(MiB(100));
  EXPECT_FALSE(budget_.TryTake(Bytes(1)));
  budget_.BreakPromise(MiB(100));
  EXPECT_TRUE(budget_.TryTake(MiB(100)));
}

TEST_F(HeapBudgetTest, KnowsWhatEvictingWouldBring) {
  ASSERT_TRUE(budget_.TryTake(MiB(90)));
  EXPECT_EQ(budget_.UncommittedWithout(MiB(30)), MiB(40));
}

TEST_F(HeapBudgetTest, TheDriverLowersTheMomentsLimitButNotTheStaticOne) {
  EXPECT_EQ(driven_.now(), MiB(100)) << "has said nothing yet";
  EXPECT_EQ(driven_.Update(0, {MiB(120), MiB(10)}), "");
  EXPECT_EQ(driven_.now(), MiB(60)) << "half of what it offers";
  EXPECT_EQ(driven_.limit(), MiB(100));
  EXPECT_EQ(driven_.Update(0, {MiB(400), MiB(10)}), "");
  EXPECT_EQ(driven_.now(), MiB(100)) << "never more than the static one";
  EXPECT_EQ(budget_.Update(0, {MiB(10), MiB(1)}), "");
  EXPECT_EQ(budget_.now(), MiB(100)) << "an administrator's limit";
}

TEST_F(HeapBudgetTest, ALimitBelowWhatIsInUseLeavesNothingAndBreaksNothing) {
  ASSERT_TRUE(driven_.TryTake(MiB(80)));
  EXPECT_EQ(driven_.Update(0, {MiB(20), MiB(80)}), "");
  EXPECT_EQ(driven_.available(), Bytes());
  EXPECT_EQ(driven_.uncommitted(), Bytes());
  EXPECT_EQ(driven_.in_use(), MiB(80));
  driven_.Return(MiB(75));
  EXPECT_EQ(driven_.available(), MiB(5));
}

TEST_F(HeapBudgetTest, ZeroIsNoAnswer) {
  const CheckedHeapReport checked = CheckHeapReport(3, GiB(1), {Bytes(), MiB(1)});
  EXPECT_FALSE(checked.report.has_value());
  EXPECT_THAT(checked.complaint, HasSubstr("heap 3"));
  EXPECT_EQ(driven_.Update(0, {MiB(20), MiB(1)}), "");
  EXPECT_NE(driven_.Update(0, {Bytes(), MiB(1)}), "");
  EXPECT_EQ(driven_.now(), MiB(100)) << "not what it said before either";
}

TEST_F(HeapBudgetTest, FiguresOverTheHeapsSizeAreTheSize) {
  const CheckedHeapReport checked = CheckHeapReport(0, GiB(1), {Bytes::Max(), GiB(2)});
  ASSERT_TRUE(checked.report.has_value());
  EXPECT_EQ(checked.report->budget, GiB(1));
  EXPECT_EQ(checked.report->usage, GiB(1));
  EXPECT_NE(checked.complaint, "");
}

TEST_F(HeapBudgetTest, AUsageOverTheBudgetIsPossible) {
  const CheckedHeapReport checked = CheckHeapReport(0, GiB(1), {MiB(10), MiB(20)});
  EXPECT_EQ(checked.complaint, "");
  EXPECT_EQ(checked.report->usage, MiB(20));
}

TEST_F(HeapBudgetTest, ComplainsOfTheDriverOnce) {
  EXPECT_NE(driven_.Update(0, {GiB(2), MiB(1)}), "");
  EXPECT_EQ(driven_.Update(0, {GiB(3), MiB(1)}), "");
  EXPECT_EQ(driven_.Update(0, {Bytes(), MiB(1)}), "");
}

TEST_F(HeapBudgetTest, LearnsTheSmallestThatTheDriverRefused) {
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(budget_.NoteDriverRefusal(MiB(64), now));
  EXPECT_FALSE(budget_.NoteDriverRefusal(MiB(64), now));
  EXPECT_FALSE(budget_.NoteDriverRefusal(MiB(80), now));
  EXPECT_TRUE(budget_.NoteDriverRefusal(MiB(32), now));
  EXPECT_EQ(budget_.Stats().smallest_driver_refusal, MiB(32));
}

TEST_F(HeapBudgetTest, RemembersARefusalForAWhileOrUntilTheDriverMakesAsMuch) {
  const absl::Time then = absl::UnixEpoch(), later = then + kRefusalIsRemembered;
  budget_.NoteDriverRefusal(MiB(64), then);
  EXPECT_TRUE(budget_.WasRefusedLately(MiB(64), then));
  EXPECT_TRUE(budget_.WasRefusedLately(MiB(80), later - absl::Nanoseconds(1)));
  EXPECT_FALSE(budget_.WasRefusedLately(MiB(63), then));
  // Another one meanwhile does not make it last longer.
  budget_.NoteDriverRefusal(MiB(80), later - absl::Nanoseconds(1));
  EXPECT_FALSE(budget_.WasRefusedLately(MiB(80), later));
  budget_.NoteDriverRefusal(MiB(64), later);
  budget_.NoteDriverAllocation(MiB(63));
  EXPECT_TRUE(budget_.WasRefusedLately(MiB(64), later));
  budget_.NoteDriverAllocation(MiB(64));
  EXPECT_FALSE(budget_.WasRefusedLately(MiB(64), later));
}

TEST_F(HeapBudgetTest, EstimatesWhatOthersHaveWhereTheDriverSaysSomething) {
  EXPECT_FALSE(budget_.Stats().others_in_use.has_value());
  EXPECT_EQ(budget_.Update(0, {MiB(624), MiB(10)}), "");
  EXPECT_EQ(budget_.Stats().others_in_use, MiB(400));
  EXPECT_EQ(budget_.Stats().driver->usage, MiB(10));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/size_model.h"

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

double BytesOf(Bytes bytes) { return static_cast<double>(bytes.count()); }

TEST(SizeModelTest, WithoutAnyKnowledgeTakesADriverThatDoesNotPad) {
  EXPECT_EQ(SizeModel().Required({}, Bytes(1000)), Bytes(1000));
}

TEST(SizeModelTest, RepeatsWhatWasSeen) {
  SizeModel model;
  model.Learn({}, Bytes(1000), Bytes(1024));
  EXPECT_EQ(model.Required({}, Bytes(1000)), Bytes(1024));
}

TEST(SizeModelTest, PadsOtherSizesLikewise) {
  SizeModel model;
  // To 64 KiB, and 64 bytes more.
  for (const uint64_t n : {1, 2, 5}) {
    model.Learn({}, KiB(64 * n), KiB(64 * n) + Bytes(64));
  }
  EXPECT_EQ(model.Required({}, KiB(192)), KiB(192) + Bytes(64));
}

TEST(SizeModelTest, FindsTheAlignmentThatExplainsWhatWasSeen) {
  SizeModel model;
  model.Learn({}, Bytes(10), Bytes(4096));
  model.Learn({}, Bytes(5000), Bytes(8192));
  EXPECT_EQ(model.Required({}, Bytes(9000)), Bytes(12288));
}

TEST(SizeModelTest, RoundSizesThatAreNotPaddedAreNoReasonToPadOthers) {
  SizeModel model;
  model.Learn({}, MiB(9), MiB(9));
  model.Learn({}, MiB(2), MiB(2));
  EXPECT_EQ(model.Required({}, MiB(8) + Bytes(1)), MiB(8) + Bytes(1));
}

TEST(SizeModelTest, NeverWrapsAndNeverSaysLessThanWasAskedFor) {
  SizeModel model;
  model.Learn({}, Bytes(10), Bytes(4096));
  EXPECT_EQ(model.Required({}, Bytes::Max()), Bytes::Max());
  BlockClass other;
  other.memory_type = 1;
  EXPECT_GE(model.Required(other, MiB(1)), MiB(1));
}

TEST(TimeModelTest, SeparatesTheTimeOfABlockFromTheTimeOfItsBytes) {
  TimeModel model;
  EXPECT_FALSE(model.known());
  // 10 us each and 1 us for each KiB.
  model.LearnAllocations(1, BytesOf(KiB(100)), absl::Microseconds(110));
  model.LearnAllocations(2, BytesOf(KiB(50)), absl::Microseconds(70));
  model.LearnAllocations(1, BytesOf(KiB(1)), absl::Microseconds(11));
  model.LearnFree(absl::Microseconds(4));
  EXPECT_TRUE(model.known());
  EXPECT_NEAR(absl::ToDoubleMicroseconds(model.For(3, 1024.0 * 30)), 3 * (10 + 4) + 30, 0.01);
}

TEST(TimeModelTest, OneSizeIsNoReasonToInventATimeForBytes) {
  TimeModel model;
  for (int i = 0; i < 3; ++i) model.LearnAllocations(1, BytesOf(MiB(1)), absl::Microseconds(50));
  EXPECT_NEAR(absl::ToDoubleMicroseconds(model.For(2, 0)), 100, 0.01);
}

TEST(TimeModelTest, NeverSaysThatMoreBytesTakeLess) {
  TimeModel model;
  model.LearnAllocations(1, BytesOf(MiB(1)), absl::Microseconds(90));
  model.LearnAllocations(1, BytesOf(MiB(64)), absl::Microseconds(10));
  EXPECT_LE(model.For(1, 0), model.For(1, 1e9));
  EXPECT_GE(model.For(1, 0), absl::ZeroDuration());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/watch_queue.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

GiveBackWanted Wanted(uint32_t device, uint32_t heap, uint64_t bytes, absl::Duration time) {
  return {device, heap, Bytes(bytes), kNow + time, kNow};
}
SegmentSealed Sealed(uint64_t id) { return {0, SegmentId(id), absl::StrCat("segment ", id)}; }

TEST(WatchQueueTest, GivesEventsInTheirOrder) {
  WatchQueue queue;
  queue.Push(Sealed(1));
  queue.Push(Wanted(0, 0, 5, absl::Seconds(1)));
  queue.Push(Sealed(2));
  EXPECT_EQ(std::get<SegmentSealed>(*queue.Pop()).segment, SegmentId(1));
  EXPECT_EQ(std::get<GiveBackWanted>(*queue.Pop()).bytes, Bytes(5));
  EXPECT_EQ(std::get<SegmentSealed>(*queue.Pop()).segment, SegmentId(2));
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(WatchQueueTest, AsksOnceForEachHeapForAllUntilTheLatest) {
  WatchQueue queue;
  queue.Push(Wanted(0, 0, 5, absl::Seconds(3)));
  queue.Push(Wanted(0, 1, 1, absl::Seconds(1)));
  queue.Push(Wanted(1, 0, 2, absl::Seconds(1)));
  queue.Push(Wanted(0, 0, 9, absl::Seconds(1)));
  queue.Push(Wanted(0, 0, 7, absl::Seconds(2)));
  const GiveBackWanted first = std::get<GiveBackWanted>(*queue.Pop());
  EXPECT_EQ(first.bytes, Bytes(21));
  EXPECT_EQ(first.deadline, kNow + absl::Seconds(3));
  EXPECT_EQ(std::get<GiveBackWanted>(*queue.Pop()).heap, 1u);
  EXPECT_EQ(std::get<GiveBackWanted>(*queue.Pop()).device, 1u);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(WatchQueueTest, AsksNotTwiceForWhatIsAskedForAnew) {
  WatchQueue queue;
  GiveBackWanted wanted = Wanted(0, 0, 5, absl::Seconds(1));
  for (int i = 0; i < 3; ++i) {
    queue.Push(wanted);
    wanted.since = wanted.deadline;
    wanted.deadline += absl::Seconds(1);
  }
  const GiveBackWanted one = std::get<GiveBackWanted>(*queue.Pop());
  EXPECT_EQ(one.bytes, Bytes(5));
  EXPECT_EQ(one.deadline, kNow + absl::Seconds(3));
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(WatchQueueTest, DropsTheOldestSealedSegmentWhenItIsFull) {
  WatchQueue queue;
  queue.Push(Wanted(0, 0, 5, absl::Seconds(1)));
  for (uint64_t i = 1; i <= WatchQueue::kMaxEvents + 10; ++i) queue.Push(Sealed(i));
  EXPECT_TRUE(std::holds_alternative<GiveBackWanted>(*queue.Pop()));
  EXPECT_EQ(std::get<SegmentSealed>(*queue.Pop()).segment, SegmentId(12));
  size_t rest = 0;
  while (queue.Pop().has_value()) ++rest;
  EXPECT_EQ(rest, WatchQueue::kMaxEvents - 2);
}

TEST(WatchQueueTest, StaysBoundedThoughEveryHeapIsWanted) {
  WatchQueue queue;
  for (uint32_t heap = 0; heap < 1000; ++heap) queue.Push(Wanted(0, heap, 1, absl::Seconds(1)));
  size_t count = 0;
  while (queue.Pop().has_value()) ++count;
  EXPECT_EQ(count, WatchQueue::kMaxEvents);
}

}  // namespace
}  // namespace heapbroker

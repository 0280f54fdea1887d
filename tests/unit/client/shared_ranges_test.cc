// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/shared_ranges.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

// What lies behind a block: a byte for each granule, by which threads tell whether
// they were given the same one.
struct FakeMemory {
  explicit FakeMemory(size_t granules) : owners(granules) {}
  std::vector<std::atomic<uint32_t>> owners;
};

using Ranges = SharedRanges<FakeMemory>;

constexpr Bytes kGranularity = Bytes(64);
constexpr Bytes kBlock = KiB(64);

std::optional<Ranges::Place> AddBlock(Ranges& ranges, Bytes size = kBlock,
                                      Bytes first = kGranularity) {
  auto memory = std::make_unique<FakeMemory>(size.count() / kGranularity.count());
  return ranges.AddBlock({.size = size, .granularity = kGranularity}, memory, first, Bytes(1));
}

TEST(SharedRangesTest, HasNoRoomWithoutBlocks) {
  Ranges ranges(kGranularity);
  EXPECT_FALSE(ranges.Allocate(Bytes(1), Bytes(1)));
  EXPECT_FALSE(ranges.Free(0, {}).known);
  EXPECT_EQ(ranges.Stats().blocks, 0u);
}

TEST(SharedRangesTest, NothingMoreIsAllocatedInARetiredBlock) {
  Ranges ranges(kGranularity);
  const auto first = AddBlock(ranges);
  const auto second = AddBlock(ranges);
  ASSERT_TRUE(first && second);
  const auto more = ranges.Allocate(kGranularity, Bytes(1));
  ASSERT_TRUE(more);
  ASSERT_EQ(more->block, first->block);
  ranges.RetireIf([&](const FakeMemory& memory) { return &memory == first->memory; });
  EXPECT_EQ(ranges.Allocate(kGranularity, Bytes(1))->block, second->block);
  EXPECT_EQ(ranges.Stats().retired, kBlock);
  EXPECT_EQ(ranges.Stats().size, kBlock + kBlock);
  // What was free or becomes free in it stays so, until it goes as a whole.
  const Ranges::Freed freed = ranges.Free(first->block, first->range.handle);
  EXPECT_TRUE(freed.known);
  EXPECT_EQ(freed.emptied, nullptr);
  EXPECT_EQ(ranges.Allocate(kGranularity, Bytes(1))->block, second->block);
  EXPECT_EQ(ranges.Free(more->block, more->range.handle).emptied.get(), first->memory);
  // Its place is another one's then.
  const auto third = AddBlock(ranges);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->block, first->block);
  EXPECT_EQ(ranges.Stats().retired, Bytes(0));
  EXPECT_TRUE(ranges.Allocate(kBlock - kGranularity, Bytes(1)));
}

TEST(SharedRangesTest, FillsABlockBeforeItTakesTheNext) {
  Ranges ranges(kGranularity);
  const auto first = AddBlock(ranges);
  const auto second = AddBlock(ranges);
  ASSERT_TRUE(first && second);
  ASSERT_NE(first->block, second->block);
  const auto most = ranges.Allocate(KiB(48), Bytes(1));
  const auto next = ranges.Allocate(KiB(48), Bytes(1));
  ASSERT_TRUE(most && next);
  EXPECT_EQ(most->block, first->block);
  EXPECT_EQ(next->block, second->block);
  EXPECT_FALSE(ranges.Allocate(KiB(48), Bytes(1)));
  // Stays with the one that served it last, also if the other has room.
  EXPECT_EQ(ranges.Allocate(KiB(1), Bytes(1))->block, second->block);
}

TEST(SharedRangesTest, ABlockThatRefusedIsAskedAgainAfterAFree) {
  Ranges ranges(kGranularity);
  const auto all = AddBlock(ranges, kBlock, kBlock);
  const auto other = AddBlock(ranges);
  EXPECT_FALSE(ranges.Allocate(kBlock, Bytes(1)));
  const auto half = ranges.Allocate(KiB(32), Bytes(1));
  ASSERT_TRUE(half);
  EXPECT_FALSE(ranges.Allocate(KiB(48), Bytes(1)));
  ASSERT_TRUE(ranges.Free(half->block, half->range.handle).known);
  EXPECT_TRUE(ranges.Allocate(KiB(48), Bytes(1)));
  EXPECT_TRUE(all && other);
}

TEST(SharedRangesTest, ARefusalBecauseOfPaddingSaysNothingAboutOtherRequests) {
  Ranges ranges(kGranularity);
  ASSERT_TRUE(AddBlock(ranges, KiB(4)));
  EXPECT_FALSE(ranges.Allocate(Bytes(64), KiB(4)));
  EXPECT_TRUE(ranges.Allocate(KiB(2), Bytes(1)));
}

TEST(SharedRangesTest, TheLastFreeHandsTheMemoryBack) {
  Ranges ranges(kGranularity);
  const auto first = AddBlock(ranges);
  ASSERT_TRUE(first);
  const auto second = ranges.Allocate(Bytes(1), Bytes(1));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->memory, first->memory);
  EXPECT_EQ(ranges.Free(first->block, first->range.handle).emptied, nullptr);
  const Ranges::Freed last = ranges.Free(second->block, second->range.handle);
  EXPECT_TRUE(last.known);
  EXPECT_EQ(last.emptied.get(), second->memory);
  EXPECT_EQ(ranges.Stats().blocks, 0u);
  EXPECT_FALSE(ranges.Allocate(Bytes(1), Bytes(1)));
  // Its place is used again, and old handles stay wrong.
  const auto third = AddBlock(ranges);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->block, first->block);
  EXPECT_FALSE(ranges.Free(first->block, first->range.handle).known);
  EXPECT_FALSE(ranges.SizeOf(first->block, first->range.handle));
  EXPECT_EQ(ranges.SizeOf(third->block, third->range.handle), kGranularity);
}

TEST(SharedRangesTest, AHandleIsGoodForItsOwnBlockOnly) {
  Ranges ranges(kGranularity);
  const auto first = AddBlock(ranges);
  const auto second = AddBlock(ranges);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(ranges.Free(second->block, first->range.handle).known);
  EXPECT_FALSE(ranges.Free(Ranges::kMaxBlocks + 1, first->range.handle).known);
  EXPECT_EQ(ranges.Stats().allocations, 2u);
}

TEST(SharedRangesTest, ABlockThatIsTooSmallForItsFirstRangeIsNotAdded) {
  Ranges ranges(kGranularity);
  auto memory = std::make_unique<FakeMemory>(1);
  EXPECT_FALSE(
      ranges.AddBlock({.size = KiB(1), .granularity = kGranularity}, memory, KiB(2), Bytes(1)));
  EXPECT_NE(memory, nullptr);
}

TEST(SharedRangesTest, CountsWhatAllBlocksHave) {
  Ranges ranges(kGranularity);
  ASSERT_TRUE(AddBlock(ranges, KiB(64)));
  ASSERT_TRUE(AddBlock(ranges, KiB(16)));
  const SharedRangesStats stats = ranges.Stats();
  EXPECT_EQ(stats.size, KiB(80));
  EXPECT_EQ(stats.allocated, Bytes(128));
  EXPECT_EQ(stats.free, KiB(80) - Bytes(128));
  EXPECT_EQ(stats.largest_free, KiB(64) - Bytes(64));
  EXPECT_EQ(stats.allocations, 2u);
  EXPECT_EQ(stats.blocks, 2u);
}

// Threads that allocate, write their names, look whether these are still there, and
// free, some of it what others allocated; blocks come and go meanwhile.
class Crowd {
 public:
  static constexpr int kThreads = 4;
  static constexpr int kOperations = 20'000;

  void Run() {
    std::vector<std::thread> threads;
    for (uint32_t name = 1; name <= kThreads; ++name) {
      threads.emplace_back([this, name] { Work(name); });
    }
    for (std::thread& thread : threads) thread.join();
    for (auto& [place, size] : handed_over_) Free(place, size, kHandedOver);
  }

  const Ranges& ranges() const { return ranges_; }
  uint64_t blocks_added() const { return blocks_added_; }
  uint64_t blocks_emptied() const { return blocks_emptied_; }
  uint64_t overlaps() const { return overlaps_; }
  uint64_t unknown() const { return unknown_; }

 private:
  using Held = std::pair<Ranges::Place, uint64_t>;
  static constexpr uint32_t kHandedOver = kThreads + 1;

  void Work(uint32_t name) {
    std::mt19937 random(name);
    std::vector<Held> mine;
    for (int i = 0; i < kOperations; ++i) {
      if (mine.size() < 20 && random() % 2 == 0) {
        mine.push_back(Allocate(1 + random() % 8000, name));
      } else if (!mine.empty()) {
        std::swap(mine[random() % mine.size()], mine.back());
        const auto [place, size] = mine.back();
        mine.pop_back();
        random() % 4 == 0 ? HandOver(place, size, name) : Free(place, size, name);
      }
      // All at once now and then, so that blocks get empty.
      while (i % 500 == 0 && !mine.empty()) {
        Free(mine.back().first, mine.back().second, name);
        mine.pop_back();
      }
    }
    for (const auto& [place, size] : mine) Free(place, size, name);
  }

  Held Allocate(uint64_t size, uint32_t name) {
    std::optional<Ranges::Place> place = ranges_.Allocate(Bytes(size), Bytes(1));
    if (!place) {
      place = AddBlock(ranges_, kBlock, Bytes(size));
      ++blocks_added_;
    }
    Mark(*place, size, 0, name);
    return {*place, size};
  }
  void Free(const Ranges::Place& place, uint64_t size, uint32_t name) {
    Mark(place, size, name, 0);
    const Ranges::Freed freed = ranges_.Free(place.block, place.range.handle);
    if (!freed.known) ++unknown_;
    if (freed.emptied != nullptr) ++blocks_emptied_;
  }
  // To whoever does so next, who frees it.
  void HandOver(const Ranges::Place& place, uint64_t size, uint32_t name) {
    Mark(place, size, name, kHandedOver);
    std::optional<Held> other;
    {
      MutexLock lock(mutex_);
      handed_over_.push_back({place, size});
      if (handed_over_.size() > 8) {
        other = handed_over_.front();
        handed_over_.erase(handed_over_.begin());
      }
    }
    if (other) Free(other->first, other->second, kHandedOver);
  }
  void Mark(const Ranges::Place& place, uint64_t size, uint32_t from, uint32_t to) {
    const uint64_t first = place.range.offset.count() / kGranularity.count();
    const uint64_t last = (place.range.offset.count() + size - 1) / kGranularity.count();
    for (uint64_t granule = first; granule <= last; ++granule) {
      if (place.memory->owners[granule].exchange(to, std::memory_order_relaxed) != from) {
        ++overlaps_;
      }
    }
  }

  Ranges ranges_{kGranularity};
  std::atomic<uint64_t> blocks_added_ = 0;
  std::atomic<uint64_t> blocks_emptied_ = 0;
  std::atomic<uint64_t> overlaps_ = 0;
  std::atomic<uint64_t> unknown_ = 0;
  Mutex mutex_;
  std::vector<Held> handed_over_;  // Guarded by it while threads run.
};

TEST(SharedRangesTest, ThreadsNeverGetTheSameBytes) {
  Crowd crowd;
  crowd.Run();
  EXPECT_EQ(crowd.overlaps(), 0u);
  EXPECT_EQ(crowd.unknown(), 0u);
  EXPECT_GT(crowd.blocks_added(), 1u);
  EXPECT_EQ(crowd.blocks_emptied(), crowd.blocks_added());
  EXPECT_EQ(crowd.ranges().Stats().blocks, 0u);
}

}  // namespace
}  // namespace heapbroker

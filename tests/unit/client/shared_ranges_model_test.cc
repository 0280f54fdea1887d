// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Random operations on SharedRanges over blocks that come, retire, go and are used
// again, and on a plain map of them.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "client/src/shared_ranges.h"
#include "gtest/gtest.h"
#include "tests/unit/client/range_model.h"

namespace heapbroker {
namespace {

// What lies behind a block; the model knows it by its address.
struct NumberedMemory {
  bool lost = false;  // Its block is retired when somebody looks.
};

class RandomBlocks {
 public:
  explicit RandomBlocks(uint32_t seed)
      : random_(seed),
        granularity_(Bytes(uint64_t{1} << Number(0, 8))),
        ranges_(granularity_),
        most_blocks_(Number(1, 12)),
        mean_size_(granularity_.count() << Number(0, 6)) {}

  void Step() {
    const uint64_t chance = Number(0, 999);
    if (chance < 20) return FreeWrongly();
    if (chance < 22) return Retire();
    if (chance < 30) return CheckSums();
    const bool grow = full_ ? chance < 300 : chance < 600;
    grow || live_.empty() ? Allocate() : Free(Number(0, live_.size() - 1));
    if (live_.empty()) full_ = false;
  }

  void FreeAll() {
    while (!live_.empty() && !::testing::Test::HasFatalFailure()) {
      Free(Number(0, live_.size() - 1));
    }
    ASSERT_TRUE(blocks_.empty());
    ASSERT_TRUE(ranges_.TakeAll().empty());
  }

  uint64_t blocks_added() const { return blocks_added_; }
  uint64_t blocks_used_again() const { return blocks_used_again_; }
  uint64_t retired() const { return retired_; }

 private:
  using Ranges = SharedRanges<NumberedMemory>;
  struct Block {
    RangeModel model;
    NumberedMemory* memory;
    uint64_t allocations = 0;
  };
  struct Live {
    Ranges::Place place;
    uint64_t size;
  };

  uint64_t Number(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }
  uint64_t RoundedUp(uint64_t size) const {
    return (size + granularity_.count() - 1) / granularity_.count() * granularity_.count();
  }

  void Allocate() {
    const uint64_t size = Number(1, 2 * mean_size_);
    const uint64_t alignment = uint64_t{1} << (Number(0, 3) == 0 ? Number(0, 12) : 0);
    const std::optional<Ranges::Place> place = ranges_.Allocate(Bytes(size), Bytes(alignment));
    if (place) return Allocated(*place, size, alignment);
    for (const auto& [index, block] : blocks_) {
      // With more gaps it may overlook one.
      if (block.memory->lost || block.model.gaps() > 256) continue;
      ASSERT_FALSE(block.model.Fits(size, alignment)) << size << " in block " << index;
    }
    if (blocks_.size() < most_blocks_) return AddBlock(size, alignment);
    full_ = true;
  }

  void Allocated(const Ranges::Place& place, uint64_t size, uint64_t alignment) {
    const auto found = blocks_.find(place.block);
    ASSERT_NE(found, blocks_.end());
    Block& block = found->second;
    ASSERT_EQ(place.memory, block.memory);
    ASSERT_FALSE(block.memory->lost);
    ASSERT_NO_FATAL_FAILURE(block.model.Allocated(place.range.offset.count(), size, alignment));
    ++block.allocations;
    live_.push_back({place, size});
  }

  void AddBlock(uint64_t size, uint64_t alignment) {
    const uint64_t needed = RoundedUp(size) + std::max(alignment, granularity_.count());
    const uint64_t base = Number(0, 100) * granularity_.count();
    const RangeAllocatorOptions options{.size = Bytes(needed + Number(0, 64) * mean_size_),
                                        .granularity = granularity_,
                                        .base_address = base};
    std::unique_ptr<NumberedMemory> memory;
    if (!idle_.empty()) {
      memory = std::move(idle_.back());
      idle_.pop_back();
      ++blocks_used_again_;
    } else {
      memory = std::make_unique<NumberedMemory>();
    }
    NumberedMemory* const address = memory.get();
    const std::optional<Ranges::Place> place =
        ranges_.AddBlock(options, memory, Bytes(size), Bytes(alignment));
    ASSERT_TRUE(place);
    ASSERT_FALSE(blocks_.contains(place->block)) << "it has a block already";
    blocks_.emplace(place->block, Block{.model = RangeModel(options), .memory = address});
    ++blocks_added_;
    Allocated(*place, size, alignment);
  }

  void Free(size_t which) {
    const Live live = live_[which];
    live_[which] = live_.back();
    live_.pop_back();
    Block& block = blocks_.at(live.place.block);
    ASSERT_EQ(ranges_.SizeOf(live.place.block, live.place.range.handle),
              std::optional<Bytes>(Bytes(RoundedUp(live.size))));
    Ranges::Freed freed = ranges_.Free(live.place.block, live.place.range.handle);
    ASSERT_TRUE(freed.known);
    freed_ = live.place;
    ASSERT_NO_FATAL_FAILURE(block.model.Freed(live.place.range.offset.count(), live.size));
    ASSERT_EQ(freed.emptied != nullptr, --block.allocations == 0);
    if (freed.emptied == nullptr) return;
    ASSERT_EQ(freed.emptied.get(), block.memory);
    blocks_.erase(live.place.block);
    if (!freed.emptied->lost) idle_.push_back(std::move(freed.emptied));
  }

  // A second time, in another block, with a number that somebody made up.
  void FreeWrongly() {
    ASSERT_FALSE(ranges_.Free(freed_.block, freed_.range.handle).known);
    ASSERT_FALSE(ranges_.SizeOf(freed_.block, freed_.range.handle));
    const RangeHandle made_up{.serial = random_(), .slot = static_cast<uint32_t>(Number(0, 99))};
    ASSERT_FALSE(ranges_.Free(static_cast<uint32_t>(Number(0, 20)), made_up).known);
    if (live_.empty()) return;
    const Ranges::Place& live = live_[Number(0, live_.size() - 1)].place;
    for (uint32_t block = 0; block < most_blocks_ + 1; ++block) {
      if (block != live.block) ASSERT_FALSE(ranges_.Free(block, live.range.handle).known);
    }
  }

  void Retire() {
    if (blocks_.empty()) return;
    std::next(blocks_.begin(), static_cast<int64_t>(Number(0, blocks_.size() - 1)))
        ->second.memory->lost = true;
    ranges_.RetireIf([](const NumberedMemory& memory) { return memory.lost; });
    ++retired_;
  }

  void CheckSums() const {
    SharedRangesStats sum;
    for (const auto& [index, block] : blocks_) {
      sum.size += Bytes(block.model.size());
      sum.allocated += Bytes(block.model.allocated());
      sum.allocations += block.allocations;
      ++sum.blocks;
      if (block.memory->lost) {
        sum.retired += Bytes(block.model.size());
      } else {
        sum.largest_free = std::max(sum.largest_free, Bytes(block.model.largest_gap()));
      }
    }
    const SharedRangesStats stats = ranges_.Stats();
    ASSERT_EQ(stats.size, sum.size);
    ASSERT_EQ(stats.allocated, sum.allocated);
    ASSERT_EQ(stats.free, sum.size - sum.allocated);
    ASSERT_EQ(stats.largest_free, sum.largest_free);
    ASSERT_EQ(stats.retired, sum.retired);
    ASSERT_EQ(stats.allocations, sum.allocations);
    ASSERT_EQ(stats.blocks, sum.blocks);
  }

  std::mt19937_64 random_;
  const Bytes granularity_;
  Ranges ranges_;
  const uint64_t most_blocks_;
  const uint64_t mean_size_;
  std::map<uint32_t, Block> blocks_;
  std::vector<Live> live_;
  std::vector<std::unique_ptr<NumberedMemory>> idle_;
  Ranges::Place freed_;  // The last that was.
  bool full_ = false;    // Until nothing is live any more.
  uint64_t blocks_added_ = 0;
  uint64_t blocks_used_again_ = 0;
  uint64_t retired_ = 0;
};

class SharedRangesModelTest : public testing::TestWithParam<uint32_t> {};

TEST_P(SharedRangesModelTest, AgreesWithAMapOfItsBlocks) {
  RandomBlocks blocks(GetParam());
  for (int step = 0; step < 10'000; ++step) {
    blocks.Step();
    ASSERT_FALSE(HasFatalFailure()) << "at step " << step;
  }
  blocks.FreeAll();
  EXPECT_GT(blocks.blocks_added(), 5u);
  EXPECT_GT(blocks.blocks_used_again(), 0u);
  EXPECT_GT(blocks.retired(), 5u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SharedRangesModelTest, testing::Range(1u, 21u));

}  // namespace
}  // namespace heapbroker

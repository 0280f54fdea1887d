// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Arenas and chains of them beside a plain model: lists of ranges, and arithmetic
// in numbers that cannot overflow. HEAPBROKER_ARENA_FIRST_SEED, _SEEDS and
// _OPERATIONS choose other runs than the usual million operations.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/src/arena_chain.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using Wide = unsigned __int128;

constexpr uint64_t kMax = ~uint64_t{0};

uint64_t Setting(const char* variable, uint64_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t n) { return engine_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // All magnitudes below 2^bits alike.
  uint64_t UpTo(int bits) { return engine_() >> (64 - 1 - Below(static_cast<uint64_t>(bits))); }

 private:
  std::mt19937_64 engine_;
};

// What is known of one block: where it lies and what was handed out of it since
// the last reset.
struct PlainBlock {
  uint64_t base = 0;
  uint64_t capacity = 0;
  uint64_t cursor = 0;
  std::map<uint64_t, uint64_t> ranges{};  // Begin to end, as offsets.

  // Where the next range of these terms would begin, if it fits.
  std::optional<uint64_t> Next(uint64_t size, uint64_t alignment) const {
    Wide address = Wide{base} + cursor;
    address += (alignment - address % alignment) % alignment;
    if (address + size > Wide{base} + capacity) return std::nullopt;
    return static_cast<uint64_t>(address - base);
  }
};

// The blocks behind the planned one, some of which are not to be had.
class RandomMemory final : public FurtherMemory {
 public:
  RandomMemory(Random& random, std::vector<PlainBlock>& blocks)
      : random_(random), blocks_(blocks) {}

  absl::StatusOr<Arena> Add(Bytes wanted, Bytes needed) override {
    EXPECT_LE(needed, wanted);
    if (needed > MiB(64) || random_.OneIn(4)) return absl::ResourceExhaustedError("others hold it");
    const uint64_t size = random_.OneIn(3) ? needed.count() : wanted.count();
    blocks_.push_back({.base = random_.UpTo(47), .capacity = size});
    return Arena(Bytes(size), blocks_.back().base);
  }
  void Drop(size_t position) override {
    ASSERT_LT(position + 1, blocks_.size());
    // What the run used stays.
    EXPECT_EQ(blocks_[position + 1].cursor, 0u);
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position) + 1);
  }

 private:
  Random& random_;
  std::vector<PlainBlock>& blocks_;
};

class Walk {
 public:
  explicit Walk(uint64_t seed)
      : random_(seed),
        blocks_{{.base = random_.OneIn(2) ? random_.UpTo(36) << 12 : random_.UpTo(47),
                 .capacity = random_.OneIn(10) ? 0 : random_.UpTo(24)}},
        overflows_(random_.OneIn(2)),
        memory_(random_, blocks_),
        chain_(Make()) {}

  void Step() {
    if (random_.OneIn(50)) return Reset();
    const uint64_t size = DrawSize();
    const uint64_t alignment = DrawAlignment();
    const bool valid = alignment != 0 && (alignment & (alignment - 1)) == 0;
    const uint64_t used = Used();
    const size_t had = blocks_.size();
    const std::optional<std::pair<size_t, uint64_t>> expected =
        valid ? Expected(size, alignment) : std::nullopt;
    const absl::StatusOr<ArenaChain::Place> place = chain_.Allocate(Bytes(size), Bytes(alignment));
    if (!valid) {
      EXPECT_THAT(place, StatusIs(absl::StatusCode::kInvalidArgument, ""));
    } else if (place.ok()) {
      if (size > 0) TakeRange(*place, size, alignment);
      if (expected && size > 0) {
        EXPECT_EQ(place->block, expected->first);
        EXPECT_EQ(place->offset, Bytes(expected->second));
      }
      // Only what fits nowhere leases.
      if (expected) EXPECT_EQ(blocks_.size(), had);
      ++granted_;
    } else {
      EXPECT_THAT(place, StatusIs(absl::StatusCode::kResourceExhausted, ""));
      EXPECT_FALSE(expected) << "refused what fits into block " << expected->first;
      EXPECT_GT(size, 0u);
      ++refused_;
    }
    if (!place.ok()) EXPECT_EQ(Used(), used);
    Compare();
  }

  void Reset() {
    chain_.Reset();
    for (PlainBlock& block : blocks_) {
      block.cursor = 0;
      block.ranges.clear();
    }
    Compare();
    EXPECT_EQ(chain_.used(), Bytes(0));
  }

  uint64_t granted() const { return granted_; }
  uint64_t refused() const { return refused_; }

 private:
  ArenaChain Make() {
    const Arena planned(Bytes(blocks_[0].capacity), blocks_[0].base);
    if (!overflows_) return ArenaChain(planned);
    OverflowPlan plan{.step = Bytes(random_.UpTo(22))};
    if (random_.OneIn(2)) plan.limit = Bytes(random_.UpTo(27));
    return ArenaChain(planned, plan, memory_);
  }

  uint64_t DrawSize() {
    switch (random_.Below(20)) {
      case 0:
        return 0;
      case 1:
        return kMax - random_.UpTo(12);
      case 2:
        return random_.UpTo(64);
      default:
        return random_.UpTo(18);
    }
  }

  uint64_t DrawAlignment() {
    if (random_.OneIn(25)) return random_.OneIn(3) ? 0 : random_.UpTo(64) | 5;
    return uint64_t{1} << random_.Below(random_.OneIn(10) ? 64 : 13);
  }

  // The first block that has room.
  std::optional<std::pair<size_t, uint64_t>> Expected(uint64_t size, uint64_t alignment) const {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const std::optional<uint64_t> offset = blocks_[i].Next(size, alignment);
      if (offset) return std::pair(i, *offset);
    }
    return std::nullopt;
  }

  void TakeRange(const ArenaChain::Place& place, uint64_t size, uint64_t alignment) {
    ASSERT_LT(place.block, blocks_.size());
    PlainBlock& block = blocks_[place.block];
    const uint64_t begin = place.offset.count();
    const uint64_t end = begin + size;
    ASSERT_GT(end, begin);
    EXPECT_LE(end, block.capacity);
    EXPECT_EQ((block.base + begin) % alignment, 0u);
    const auto after = block.ranges.lower_bound(begin);
    if (after != block.ranges.end()) EXPECT_LE(end, after->first) << "overlaps the next range";
    if (after != block.ranges.begin()) {
      EXPECT_LE(std::prev(after)->second, begin) << "overlaps the range before";
    }
    block.ranges[begin] = end;
    block.cursor = end;
    peak_ = std::max(peak_, Used());
  }

  uint64_t Used() const {
    uint64_t sum = 0;
    for (const PlainBlock& block : blocks_) sum += block.cursor;
    return sum;
  }

  void Compare() const {
    uint64_t further = 0;
    for (size_t i = 1; i < blocks_.size(); ++i) further += blocks_[i].capacity;
    EXPECT_EQ(chain_.used(), Bytes(Used()));
    EXPECT_EQ(chain_.peak(), Bytes(peak_));
    EXPECT_EQ(chain_.overflow(), Bytes(further));
  }

  Random random_;
  std::vector<PlainBlock> blocks_;
  const bool overflows_;
  RandomMemory memory_;
  ArenaChain chain_;
  uint64_t peak_ = 0;
  uint64_t granted_ = 0;
  uint64_t refused_ = 0;
};

class ArenaModelTest : public testing::TestWithParam<uint64_t> {};

TEST_P(ArenaModelTest, RandomOperationsAgreeWithPlainLists) {
  const uint64_t operations = Setting("HEAPBROKER_ARENA_OPERATIONS", 50'000);
  Walk walk(GetParam());
  for (uint64_t i = 0; i < operations; ++i) {
    walk.Step();
    ASSERT_FALSE(HasFailure()) << "seed " << GetParam() << ", operation " << i;
  }
  walk.Reset();
  std::cout << "seed " << GetParam() << ", " << operations << " operations: " << walk.granted()
            << " granted, " << walk.refused() << " refused\n";
  // Both ways out were really taken.
  EXPECT_GT(walk.granted(), operations / 50);
  EXPECT_GT(walk.refused(), operations / 50);
}

// A million operations in all.
INSTANTIATE_TEST_SUITE_P(Seeds, ArenaModelTest,
                         testing::Range(Setting("HEAPBROKER_ARENA_FIRST_SEED", 1),
                                        Setting("HEAPBROKER_ARENA_FIRST_SEED", 1) +
                                            Setting("HEAPBROKER_ARENA_SEEDS", 20)));

}  // namespace
}  // namespace heapbroker

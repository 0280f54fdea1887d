// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/arena_chain.h"

#include <cstddef>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes what it is asked for, and has as much as the test says.
class NotedMemory final : public FurtherMemory {
 public:
  absl::StatusOr<Arena> Add(Bytes wanted, Bytes needed) override {
    asked_.push_back(wanted);
    Bytes size = wanted;
    if (size > largest_) size = needed;
    if (size > largest_) return absl::ResourceExhaustedError("others hold it");
    held_.push_back(size);
    return Arena(size);
  }
  void Drop(size_t position) override {
    ASSERT_LT(position, held_.size());
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(position));
  }

  void HasAtMost(Bytes largest) { largest_ = largest; }
  const std::vector<Bytes>& asked() const { return asked_; }
  const std::vector<Bytes>& held() const { return held_; }

 private:
  Bytes largest_ = Bytes::Max();
  std::vector<Bytes> asked_;
  std::vector<Bytes> held_;
};

class ArenaChainTest : public testing::Test {
 protected:
  ArenaChain Overflowing(OverflowPlan plan) { return ArenaChain(Arena(Bytes(100)), plan, memory_); }

  // The block that the next request lies in.
  size_t BlockOf(ArenaChain& chain, uint64_t size) {
    const absl::StatusOr<ArenaChain::Place> place = chain.Allocate(Bytes(size), Bytes(1));
    EXPECT_THAT(place, IsOk());
    return place.ok() ? place->block : 1000;
  }

  NotedMemory memory_;
};

TEST_F(ArenaChainTest, IsOneArenaWhereThereIsNoOverflow) {
  ArenaChain chain(Arena(Bytes(100)));
  EXPECT_EQ(BlockOf(chain, 90), 0u);
  EXPECT_THAT(chain.Allocate(Bytes(20), Bytes(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "90 of 100 bytes are used"));
  EXPECT_EQ(chain.used(), Bytes(90));
  EXPECT_THAT(chain.Allocate(Bytes(1), Bytes(3)),
              StatusIs(absl::StatusCode::kInvalidArgument, "power of two"));
}

TEST_F(ArenaChainTest, ResetKeepsThePeak) {
  ArenaChain chain(Arena(Bytes(100)));
  BlockOf(chain, 80);
  chain.Reset();
  EXPECT_EQ(chain.used(), Bytes(0));
  EXPECT_EQ(chain.peak(), Bytes(80));
  BlockOf(chain, 30);
  EXPECT_EQ(chain.peak(), Bytes(80));
}

TEST_F(ArenaChainTest, GoesOnInAFurtherBlockAndStillFillsTheEarlierOnes) {
  ArenaChain chain = Overflowing({.step = Bytes(1000)});
  EXPECT_EQ(BlockOf(chain, 60), 0u);
  EXPECT_EQ(BlockOf(chain, 60), 1u);
  EXPECT_EQ(BlockOf(chain, 40), 0u);
  EXPECT_EQ(BlockOf(chain, 940), 1u);
  EXPECT_EQ(BlockOf(chain, 1), 2u);
  EXPECT_THAT(memory_.asked(), ElementsAre(Bytes(1000), Bytes(1000)));
  EXPECT_EQ(chain.overflow(), Bytes(2000));
  EXPECT_EQ(chain.used(), Bytes(1101));
  EXPECT_EQ(chain.peak(), Bytes(1101));
}

TEST_F(ArenaChainTest, AsksForMoreThanTheStepWhereTheRequestNeedsIt) {
  ArenaChain chain = Overflowing({.step = Bytes(100)});
  ASSERT_THAT(chain.Allocate(Bytes(500), Bytes(64)), IsOk());
  // Room for the request wherever the block begins.
  EXPECT_THAT(memory_.asked(), ElementsAre(Bytes(563)));
}

TEST_F(ArenaChainTest, TakesWhatIsNeededWhereTheStepIsNotToBeHad) {
  memory_.HasAtMost(Bytes(150));
  ArenaChain chain = Overflowing({.step = Bytes(1000)});
  EXPECT_EQ(BlockOf(chain, 120), 1u);
  EXPECT_EQ(chain.overflow(), Bytes(120));
}

TEST_F(ArenaChainTest, ARefusedFurtherBlockChangesNothing) {
  ArenaChain chain = Overflowing({});
  BlockOf(chain, 70);
  memory_.HasAtMost(Bytes(0));
  EXPECT_THAT(chain.Allocate(Bytes(50), Bytes(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "others hold it"));
  EXPECT_EQ(chain.used(), Bytes(70));
  EXPECT_EQ(BlockOf(chain, 30), 0u);
}

TEST_F(ArenaChainTest, NeverLeasesMoreThanItsLimit) {
  ArenaChain chain = Overflowing({.step = Bytes(60), .limit = Bytes(100)});
  BlockOf(chain, 100);
  EXPECT_EQ(BlockOf(chain, 50), 1u);
  // The step would pass the limit; what is left of it does not.
  EXPECT_EQ(BlockOf(chain, 40), 2u);
  EXPECT_THAT(memory_.asked(), ElementsAre(Bytes(60), Bytes(40)));
  EXPECT_THAT(chain.Allocate(Bytes(11), Bytes(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "100 of the 100 bytes"));
  EXPECT_THAT(chain.Allocate(Bytes::Max(), Bytes(2)),
              StatusIs(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(memory_.asked().size(), 2u);
}

TEST_F(ArenaChainTest, AnEmptyRequestNeverLeases) {
  ArenaChain chain = Overflowing({});
  BlockOf(chain, 100);
  EXPECT_THAT(chain.Allocate(Bytes(0), Bytes(4096)), IsOk());
  EXPECT_THAT(memory_.asked(), IsEmpty());
}

TEST_F(ArenaChainTest, KeepsAFurtherBlockForAsLongAsEveryRunUsesIt) {
  ArenaChain chain = Overflowing({.step = Bytes(1000)});
  for (int run = 0; run < 3; ++run) {
    BlockOf(chain, 100);
    EXPECT_EQ(BlockOf(chain, 50), 1u);
    chain.Reset();
    EXPECT_THAT(memory_.held(), ElementsAre(Bytes(1000)));
  }
  EXPECT_EQ(memory_.asked().size(), 1u);
  // The run that does without gives it back when it ends.
  BlockOf(chain, 100);
  chain.Reset();
  EXPECT_THAT(memory_.held(), IsEmpty());
  EXPECT_EQ(chain.overflow(), Bytes(0));
}

TEST_F(ArenaChainTest, GivesBackJustTheBlocksThatTheRunDidNotUse) {
  ArenaChain chain = Overflowing({.step = Bytes(1)});
  BlockOf(chain, 100);
  EXPECT_EQ(BlockOf(chain, 10), 1u);
  EXPECT_EQ(BlockOf(chain, 20), 2u);
  EXPECT_EQ(BlockOf(chain, 30), 3u);
  chain.Reset();
  BlockOf(chain, 100);
  EXPECT_EQ(BlockOf(chain, 15), 2u);
  chain.Reset();
  EXPECT_THAT(memory_.held(), ElementsAre(Bytes(20)));
  BlockOf(chain, 100);
  EXPECT_EQ(BlockOf(chain, 20), 1u);
}

}  // namespace
}  // namespace heapbroker

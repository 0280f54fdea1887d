// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/idle_leases.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IdleLeasesTest : public ::testing::Test {
 protected:
  // Without a lease or an import.
  IdleLeases::Block MakeBlock(uint64_t number, Bytes bytes, uint32_t heap = 0,
                              const std::string& kind = "a") {
    auto block = std::make_unique<LeasedMemory>(
        LeasedMemory{.kind = kind, .size = bytes, .bytes = bytes, .heap_index = heap});
    numbers_[block.get()] = number;
    return block;
  }
  uint64_t NumberOf(const IdleLeases::Block& block) const { return numbers_.at(block.get()); }
  std::vector<uint64_t> Numbers(const std::vector<IdleLeases::Block>& blocks) const {
    std::vector<uint64_t> numbers;
    for (const IdleLeases::Block& block : blocks) numbers.push_back(NumberOf(block));
    return numbers;
  }
  std::vector<uint64_t> Put(IdleLeases::Block block, Bytes max_bytes = Bytes(100)) {
    now_ += seconds(1);
    return Numbers(idle_.Put(std::move(block), now_, max_bytes));
  }

  std::map<const LeasedMemory*, uint64_t> numbers_;
  IdleLeases::Time now_{};
  IdleLeases idle_;
};

TEST_F(IdleLeasesTest, TheOldestGoFirstWhenThereAreTooManyBytes) {
  EXPECT_THAT(Put(MakeBlock(1, Bytes(40))), IsEmpty());
  EXPECT_THAT(Put(MakeBlock(2, Bytes(40))), IsEmpty());
  EXPECT_THAT(Put(MakeBlock(3, Bytes(60))), ElementsAre(1));
  EXPECT_EQ(idle_.bytes(), Bytes(100));
  EXPECT_EQ(idle_.count(), 2u);
}

TEST_F(IdleLeasesTest, ABlockThatIsTooLargeDrivesNobodyOut) {
  EXPECT_THAT(Put(MakeBlock(1, Bytes(40))), IsEmpty());
  EXPECT_THAT(Put(MakeBlock(2, Bytes(101))), ElementsAre(2));
  EXPECT_EQ(idle_.count(), 1u);
}

TEST_F(IdleLeasesTest, TakesTheSmallestThatFitsAndOfThoseTheLatest) {
  for (const uint64_t number : {1, 2}) Put(MakeBlock(number, Bytes(30)));
  Put(MakeBlock(3, Bytes(10)));
  Put(MakeBlock(4, Bytes(20), 0, "b"));
  EXPECT_EQ(NumberOf(idle_.Take("a", Bytes(11))), 2u);
  EXPECT_EQ(NumberOf(idle_.Take("a", Bytes(10))), 3u);
  EXPECT_EQ(idle_.Take("b", Bytes(21)), nullptr);
  EXPECT_EQ(idle_.Take("c", Bytes(1)), nullptr);
  EXPECT_EQ(idle_.bytes(), Bytes(50));
}

TEST_F(IdleLeasesTest, TakesWhatIsOlderThanAGivenTime) {
  for (const uint64_t number : {1, 2, 3}) Put(MakeBlock(number, Bytes(10)));
  EXPECT_EQ(idle_.oldest(), IdleLeases::Time(seconds(1)));
  EXPECT_THAT(Numbers(idle_.TakeFrom(IdleLeases::Time(seconds(2)))), ElementsAre(1, 2));
  EXPECT_EQ(idle_.oldest(), IdleLeases::Time(seconds(3)));
  idle_.TakeDownTo(Bytes(0));
  EXPECT_EQ(idle_.oldest(), std::nullopt);
}

TEST_F(IdleLeasesTest, TakesThoseThatAreToGo) {
  for (const uint64_t number : {1, 2, 3}) Put(MakeBlock(number, Bytes(10 * number)));
  EXPECT_THAT(
      Numbers(idle_.TakeIf([](const LeasedMemory& memory) { return memory.size != Bytes(20); })),
      ElementsAre(1, 3));
  EXPECT_EQ(idle_.bytes(), Bytes(20));
  // Without a lease there is none that could be lost.
  EXPECT_THAT(idle_.TakeLost(), IsEmpty());
}

TEST_F(IdleLeasesTest, TakesAsMuchOfOneHeapAsIsAskedFor) {
  Put(MakeBlock(1, Bytes(10), 0));
  Put(MakeBlock(2, Bytes(10), 1));
  Put(MakeBlock(3, Bytes(10), 0));
  Put(MakeBlock(4, Bytes(10), 0));
  EXPECT_THAT(Numbers(idle_.TakeOf(0, 0, Bytes(11))), ElementsAre(1, 3));
  EXPECT_THAT(Numbers(idle_.TakeOf(0, 0, Bytes(0))), IsEmpty());
  EXPECT_THAT(Numbers(idle_.TakeOf(1, 0, Bytes(100))), IsEmpty());
  EXPECT_THAT(idle_.Report(),
              ElementsAre(IdleMemory{0, 0, Bytes(10)}, IdleMemory{0, 1, Bytes(10)}));
}

}  // namespace
}  // namespace heapbroker

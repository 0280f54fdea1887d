// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/heap_assignment.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using Pieces = std::vector<Piece>;

std::variant<HeapAssignment, NoAssignment> Assign(const Pieces& pieces, std::vector<Bytes> room) {
  auto assigned = AssignHeaps(pieces, room);
  const auto* heaps = std::get_if<HeapAssignment>(&assigned);
  if (heaps == nullptr) return assigned;
  EXPECT_EQ(heaps->size(), pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const uint32_t heap = (*heaps)[i];
    EXPECT_EQ(std::count(pieces[i].heaps.begin(), pieces[i].heaps.end(), heap), 1);
    EXPECT_LE(pieces[i].bytes, room[heap]);
    room[heap] -= std::min(room[heap], pieces[i].bytes);
  }
  return assigned;
}

bool Fits(const Pieces& pieces, const std::vector<Bytes>& room) {
  return std::holds_alternative<HeapAssignment>(Assign(pieces, room));
}

// Every assignment there is.
bool FitsSomehow(const Pieces& pieces, std::vector<Bytes>& room, size_t from = 0) {
  if (from == pieces.size()) return true;
  return std::any_of(pieces[from].heaps.begin(), pieces[from].heaps.end(), [&](uint32_t heap) {
    if (pieces[from].bytes > room[heap]) return false;
    room[heap] -= pieces[from].bytes;
    const bool fits = FitsSomehow(pieces, room, from + 1);
    room[heap] += pieces[from].bytes;
    return fits;
  });
}

TEST(HeapAssignmentTest, FindsTheOneThatThereIs) {
  EXPECT_TRUE(Fits({{MiB(60), {0, 1}}, {MiB(50), {0, 1}}, {MiB(50), {0, 1}}}, {MiB(100), MiB(60)}));
  EXPECT_TRUE(Fits({{MiB(60), {0, 1}}, {MiB(60), {0}}}, {MiB(100), MiB(60)}));
  EXPECT_TRUE(Fits({}, {}));
}

TEST(HeapAssignmentTest, NamesTheHeapThatIsShort) {
  const auto short_of = [](const Pieces& pieces, const std::vector<Bytes>& room) {
    const auto assigned = Assign(pieces, room);
    const auto* none = std::get_if<NoAssignment>(&assigned);
    EXPECT_TRUE(none != nullptr && none->certain);
    return none != nullptr ? none->heap : 99;
  };
  // What the third heap has room for is not missing on the first.
  EXPECT_EQ(short_of({{MiB(5), {1}}, {MiB(100), {0, 2}}}, {MiB(90), MiB(1), MiB(200)}), 1u);
  EXPECT_EQ(short_of({{MiB(50), {0, 1}}, {MiB(50), {0, 1}}, {MiB(50), {0, 1}}}, {MiB(70), MiB(80)}),
            1u);
}

TEST(HeapAssignmentTest, SumsThatWouldWrapFitNowhere) {
  EXPECT_FALSE(Fits({{Bytes::Max(), {0}}, {Bytes::Max(), {0}}}, {GiB(1)}));
  EXPECT_FALSE(Fits({{Bytes::Max(), {0, 1}}, {Bytes::Max(), {0, 1}}, {Bytes(1), {0, 1}}},
                    {Bytes::Max(), Bytes::Max() - Bytes(1)}));
}

TEST(HeapAssignmentTest, HundredsOfOneSizeAreNoTrouble) {
  const Pieces many(256, Piece{MiB(2), {0, 1}});
  EXPECT_TRUE(Fits(many, {MiB(101), MiB(413)}));
  const auto assigned = Assign(many, {MiB(101), MiB(411)});
  ASSERT_TRUE(std::holds_alternative<NoAssignment>(assigned));
  EXPECT_TRUE(std::get<NoAssignment>(assigned).certain) << "one half of each is left over";
}

TEST(HeapAssignmentTest, GivesUpInsteadOfSearchingForEver) {
  std::mt19937 random(1);
  Pieces pieces(40, Piece{Bytes(), {0, 1}});
  Bytes sum;
  for (Piece& piece : pieces) {
    // Even, all of them, and one odd byte of room on each heap.
    piece.bytes = Bytes(2 * (1000000 + random() % 1000000));
    sum += piece.bytes;
  }
  const Bytes half(sum.count() / 4 * 2 + 1);
  const auto assigned = Assign(pieces, {half, sum - half});
  ASSERT_TRUE(std::holds_alternative<NoAssignment>(assigned));
  EXPECT_FALSE(std::get<NoAssignment>(assigned).certain);
}

TEST(HeapAssignmentTest, AgreesWithTryingThemAll) {
  std::mt19937 random(2);
  size_t fitted = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t heaps = 1 + random() % 3;
    Pieces pieces(1 + random() % (heaps == 3 ? 7 : 8));
    Bytes sum;
    for (Piece& piece : pieces) {
      piece.bytes = Bytes(1 + random() % 12);
      sum += piece.bytes;
      for (uint32_t heap = 0; heap < heaps; ++heap) {
        if (random() % 2 == 0) piece.heaps.push_back(heap);
      }
      if (piece.heaps.empty()) piece.heaps.push_back(random() % heaps);
    }
    std::vector<Bytes> room;
    for (uint32_t heap = 0; heap < heaps; ++heap) {
      room.push_back(Bytes(sum.count() / heaps + random() % 4));
    }
    const auto assigned = Assign(pieces, room);
    const auto* none = std::get_if<NoAssignment>(&assigned);
    ASSERT_TRUE(none == nullptr || none->certain) << round;
    ASSERT_EQ(none == nullptr, FitsSomehow(pieces, room)) << round;
    fitted += none == nullptr ? 1 : 0;
  }
  EXPECT_GT(fitted, kRounds / 10u);
  EXPECT_LT(fitted, kRounds * 9u / 10u);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/size_classes.h"

#include <cstdint>
#include <limits>
#include <random>
#include <set>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(SizeClassesTest, LargerSizesNeverHaveLowerClasses) {
  for (uint64_t size = 1; size < 100'000; ++size) {
    ASSERT_LE(SizeClassOf(size - 1), SizeClassOf(size)) << size;
    ASSERT_LE(SizeClassOf(size), SizeClassOf(size - 1) + 1) << size;
  }
  for (int bit = 20; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    EXPECT_EQ(SizeClassOf(power - 1) + 1, SizeClassOf(power)) << bit;
    EXPECT_EQ(SizeClassOf(power), SizeClassOf(power + power / 64 - 1)) << bit;
    EXPECT_EQ(SizeClassOf(power) + 1, SizeClassOf(power + power / 64)) << bit;
  }
}

TEST(SizeClassesTest, SmallSizesHaveClassesOfTheirOwn) {
  std::set<uint32_t> classes;
  for (uint64_t size = 1; size < 128; ++size) classes.insert(SizeClassOf(size));
  EXPECT_EQ(classes.size(), 127u);
}

TEST(SizeClassesTest, TheClassAboveHasNothingThatIsTooSmall) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t size = (random() >> random() % 64) | 1;
    const uint32_t above = SizeClassAbove(size);
    EXPECT_LE(SizeClassOf(size), above);
    EXPECT_LT(SizeClassOf(size - 1), above) << size;
  }
  EXPECT_EQ(SizeClassAbove(kMax), SizeClassOf(kMax) + 1);
}

TEST(SizeClassesTest, FindsTheNextClassThatHasMembers) {
  SizeClasses classes(kMax);
  std::set<uint32_t> model;
  const uint32_t last = SizeClassOf(kMax);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t chosen = random() % (last + 1);
    if (model.count(chosen) == 0) {
      model.insert(chosen);
      classes.Open(chosen, chosen + 1);
    } else if (model.size() > 5) {
      model.erase(chosen);
      classes.Empty(chosen);
    }
    const uint32_t from = random() % (last + 2);
    const auto next = model.lower_bound(from);
    ASSERT_EQ(classes.FindFrom(from), next == model.end() ? SizeClasses::kNone : *next);
    ASSERT_EQ(classes.Highest(), *model.rbegin());
    ASSERT_EQ(classes.first(chosen), model.count(chosen) != 0 ? chosen + 1 : 0);
    while (model.size() > 200) {
      classes.Empty(*model.begin());
      model.erase(model.begin());
    }
  }
}

TEST(SizeClassesTest, HasNoneAtFirst) {
  const SizeClasses classes(1000);
  EXPECT_EQ(classes.FindFrom(0), SizeClasses::kNone);
  EXPECT_EQ(classes.Highest(), SizeClasses::kNone);
}

}  // namespace
}  // namespace heapbroker

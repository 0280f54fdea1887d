// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/memory_type_wish.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

MemoryTypeWish Parsed(absl::string_view text) {
  const absl::StatusOr<MemoryTypeWish> wish = ParseMemoryTypeWish(text);
  EXPECT_THAT(wish, IsOk()) << text;
  return wish.value_or(MemoryTypeWish());
}

// All sixteen types that Vulkan's four properties could make.
std::vector<MemoryTypeInfo> AllTypes() {
  std::vector<MemoryTypeInfo> types;
  for (uint32_t bits = 0; bits < 16; ++bits) {
    MemoryTypeInfo type;
    type.device_local = (bits & 1) != 0;
    type.host_visible = (bits & 2) != 0;
    type.host_coherent = (bits & 4) != 0;
    type.host_cached = (bits & 8) != 0;
    types.push_back(type);
  }
  return types;
}

TEST(MemoryTypeWishTest, ReadsEachNameAsTheFieldOfThatName) {
  const std::vector<std::pair<std::string, bool MemoryTypeWish::*>> names = {
      {"device_local", &MemoryTypeWish::device_local},
      {"host_local", &MemoryTypeWish::host_local},
      {"host_visible", &MemoryTypeWish::host_visible},
      {"host_coherent", &MemoryTypeWish::host_coherent},
      {"host_cached", &MemoryTypeWish::host_cached},
      {"transient", &MemoryTypeWish::transient},
      {"*;mapping", &MemoryTypeWish::host_visible}};
  for (const auto& [name, field] : names) {
    MemoryTypeWish expected;
    expected.*field = true;
    EXPECT_EQ(Parsed(name), expected) << name;
  }
}

TEST(MemoryTypeWishTest, WhatEveryTypeHasAsksForNothing) {
  for (const char* text : {"device_visible", "optimal", "*", "*;*", "*;", ";transfer", "*;transfer",
                           "optimal;dispatch", "device_visible|optimal;transfer"}) {
    EXPECT_EQ(Parsed(text), MemoryTypeWish()) << text;
  }
  for (const MemoryTypeInfo& type : AllTypes()) EXPECT_TRUE(Satisfies(type, MemoryTypeWish()));
}

TEST(MemoryTypeWishTest, JoinsNamesInAnyCaseWithSpacesAroundThem) {
  MemoryTypeWish both;
  both.device_local = true;
  both.host_visible = true;
  for (const char* text : {"device_local|host_visible", "host_visible|device_local",
                           "DEVICE_LOCAL|Host_Visible", " device_local | host_visible ",
                           "device_local|host_visible;transfer", "device_local;transfer|mapping",
                           "device_local ; Mapping", "device_local|device_local|host_visible"}) {
    EXPECT_EQ(Parsed(text), both) << text;
  }
}

TEST(MemoryTypeWishTest, AnUnknownMemoryTypeListsTheKnownOnes) {
  const auto wish = ParseMemoryTypeWish("device_local|hbm");
  EXPECT_THAT(wish,
              StatusIs(kInvalid,
                       "\"device_local|hbm\" at position 13: \"hbm\" is no memory type; known "
                       "are device_local, host_local, host_visible, host_coherent, "
                       "host_cached, device_visible, optimal, transient"));
}

TEST(MemoryTypeWishTest, AnUnknownUsageListsTheKnownOnes) {
  EXPECT_THAT(ParseMemoryTypeWish("device_local;uniform"),
              StatusIs(kInvalid,
                       "\"device_local;uniform\" at position 13: \"uniform\" is no usage; known "
                       "are transfer, dispatch, mapping"));
}

TEST(MemoryTypeWishTest, ANameOfTheOtherHalfIsUnknown) {
  EXPECT_THAT(ParseMemoryTypeWish("mapping"), StatusIs(kInvalid, "is no memory type"));
  EXPECT_THAT(ParseMemoryTypeWish("*;device_local"), StatusIs(kInvalid, "is no usage"));
}

TEST(MemoryTypeWishTest, AMissingNameIsAnError) {
  EXPECT_THAT(ParseMemoryTypeWish("device_local||host_visible"),
              StatusIs(kInvalid, "at position 13: \"\" is no memory type"));
  EXPECT_THAT(ParseMemoryTypeWish("|device_local"), StatusIs(kInvalid, "at position 0"));
  EXPECT_THAT(ParseMemoryTypeWish("device_local|"), StatusIs(kInvalid, "at position 13"));
  EXPECT_THAT(ParseMemoryTypeWish("*;|"), StatusIs(kInvalid, "at position 2"));
}

TEST(MemoryTypeWishTest, AStarStandsByItself) {
  EXPECT_THAT(ParseMemoryTypeWish("device_local|*"),
              StatusIs(kInvalid, "at position 13: \"*\" is no memory type"));
  EXPECT_THAT(ParseMemoryTypeWish("*|device_local"), StatusIs(kInvalid, "at position 0"));
}

TEST(MemoryTypeWishTest, AnEmptyKeyIsAnError) {
  EXPECT_THAT(ParseMemoryTypeWish(""), StatusIs(kInvalid, "a heap key was expected"));
  EXPECT_THAT(ParseMemoryTypeWish("  "), StatusIs(kInvalid, "device_local, host_local"));
  EXPECT_THAT(ParseMemoryTypeWish(absl::string_view()), StatusIs(kInvalid, "position 0"));
}

TEST(MemoryTypeWishTest, AThirdPartIsAnError) {
  EXPECT_THAT(ParseMemoryTypeWish("device_local;transfer;dispatch"),
              StatusIs(kInvalid, "at position 22: a heap key is memory_type[;usage]"));
}

TEST(MemoryTypeWishTest, QuotesHostileTextEscaped) {
  EXPECT_THAT(ParseMemoryTypeWish("a\nb"), StatusIs(kInvalid, "\"a\\nb\" at position 0"));
  EXPECT_THAT(ParseMemoryTypeWish("\xff|\x1b[2J"), StatusIs(kInvalid, "\\xff|\\x1b"));
}

TEST(MemoryTypeWishTest, IsSatisfiedByTheTypesThatHaveAllOfIt) {
  for (const MemoryTypeInfo& type : AllTypes()) {
    const std::string shown = MemoryTypeText(type);
    EXPECT_EQ(Satisfies(type, Parsed("device_local")), type.device_local) << shown;
    EXPECT_EQ(Satisfies(type, Parsed("host_visible")), type.host_visible) << shown;
    EXPECT_EQ(Satisfies(type, Parsed("*;mapping")), type.host_visible) << shown;
    EXPECT_EQ(Satisfies(type, Parsed("host_coherent")), type.host_coherent) << shown;
    EXPECT_EQ(Satisfies(type, Parsed("host_cached")), type.host_cached) << shown;
    EXPECT_EQ(Satisfies(type, Parsed("device_local|host_cached")),
              type.device_local && type.host_cached)
        << shown;
    EXPECT_EQ(Satisfies(type, Parsed("host_local")),
              type.host_visible && type.host_coherent && !type.device_local)
        << shown;
    EXPECT_FALSE(Satisfies(type, Parsed("host_local|device_local"))) << shown;
    EXPECT_TRUE(Satisfies(type, Parsed("transient"))) << shown;
  }
}

TEST(MemoryTypeWishTest, NamesThePropertiesOfATypeAsAKeyWould) {
  for (const MemoryTypeInfo& type : AllTypes()) {
    const std::string text = MemoryTypeText(type);
    if (text == "no property") continue;
    for (const MemoryTypeInfo& other : AllTypes()) {
      const bool has_all = (!type.device_local || other.device_local) &&
                           (!type.host_visible || other.host_visible) &&
                           (!type.host_coherent || other.host_coherent) &&
                           (!type.host_cached || other.host_cached);
      EXPECT_EQ(Satisfies(other, Parsed(text)), has_all) << text;
    }
  }
}

}  // namespace
}  // namespace heapbroker

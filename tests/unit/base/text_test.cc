// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/base/text.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(FindInvalidUtf8Test, AcceptsEveryLengthOfSequence) {
  EXPECT_EQ(FindInvalidUtf8(""), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8("plain"), std::nullopt);
  EXPECT_EQ(FindInvalidUtf8("\xC3\xA9"), std::nullopt);          // U+00E9
  EXPECT_EQ(FindInvalidUtf8("\xE2\x82\xAC"), std::nullopt);      // U+20AC
  EXPECT_EQ(FindInvalidUtf8("\xF0\x9F\x98\x80"), std::nullopt);  // U+1F600
  EXPECT_EQ(FindInvalidUtf8("\xF4\x8F\xBF\xBF"), std::nullopt);  // U+10FFFF
}

TEST(FindInvalidUtf8Test, GivesThePositionOfTheFirstBadSequence) {
  EXPECT_EQ(FindInvalidUtf8("ab\xFF"), 2u);
  EXPECT_EQ(FindInvalidUtf8("\x80"), 0u);
  EXPECT_EQ(FindInvalidUtf8("\xC3\xA9\xC3"), 2u);
}

TEST(FindInvalidUtf8Test, RefusesWhatOtherDecodersReadAsSomethingElse) {
  EXPECT_EQ(FindInvalidUtf8("\xC0\x80"), 0u);          // Zero, overlong.
  EXPECT_EQ(FindInvalidUtf8("\xC1\xBF"), 0u);          // DEL, overlong.
  EXPECT_EQ(FindInvalidUtf8("\xE0\x9F\xBF"), 0u);      // Overlong.
  EXPECT_EQ(FindInvalidUtf8("\xF0\x8F\xBF\xBF"), 0u);  // Overlong.
  EXPECT_EQ(FindInvalidUtf8("\xED\xA0\x80"), 0u);      // A surrogate.
  EXPECT_EQ(FindInvalidUtf8("\xF4\x90\x80\x80"), 0u);  // Past U+10FFFF.
  EXPECT_EQ(FindInvalidUtf8("\xF5\x80\x80\x80"), 0u);
}

TEST(FindInvalidUtf8Test, RefusesSequencesThatEndTooEarly) {
  EXPECT_EQ(FindInvalidUtf8("\xE2\x82"), 0u);
  EXPECT_EQ(FindInvalidUtf8("\xF0\x9F\x98"), 0u);
  EXPECT_EQ(FindInvalidUtf8("\xE2\x82z"), 0u);
}

TEST(CheckNameTest, AcceptsUpTo128Bytes) {
  EXPECT_TRUE(CheckName("hello.name", "x").ok());
  EXPECT_TRUE(CheckName("hello.name", std::string(128, 'x')).ok());
  EXPECT_TRUE(CheckName("hello.name", "mod\xC3\xA8le 7").ok());
}

TEST(CheckNameTest, SaysWhichFieldIsOutOfWhichRange) {
  const absl::Status status = CheckName("hello.name", std::string(129, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(absl::StartsWith(status.message(), "hello.name: ")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "129")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "128")) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckName("hello.name", "")));
}

TEST(CheckNameTest, CountsBytesAndNotCharacters) {
  std::string name;
  for (int i = 0; i < 64; ++i) name += "\xC3\xA9";
  EXPECT_TRUE(CheckName("name", name).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckName("name", name + "x")));
}

TEST(CheckNameTest, RefusesInvalidUtf8ByPosition) {
  const absl::Status status = CheckName("name", "ab\xFF");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "byte 2")) << status;
}

TEST(CheckNameTest, RefusesControlCharactersThatCouldForgeLines) {
  for (const std::string name : {"a\nb", "a\rb", "a\tb", "\x1B[31m", "\x7F", "a\xC2\x85z"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckName("name", name)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(CheckName("name", std::string("a\0b", 3))));
}

TEST(PrintableTest, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(Printable("classifier 1"), "classifier 1");
  EXPECT_EQ(Printable("mod\xC3\xA8le"), "mod\xC3\xA8le");
}

TEST(PrintableTest, EscapesWhatATerminalWouldObey) {
  for (const std::string text : {"a\nb", "\x1B[31m", "ab\xFF"}) {
    for (const char c : Printable(text)) {
      EXPECT_TRUE(c >= 0x20 && c < 0x7F) << static_cast<int>(c);
    }
  }
}

TEST(PrintableTest, EscapesWhatTurnsTheTextAround) {
  for (const char* text : {"a\xE2\x80\xA8z", "a\xE2\x80\xAEz", "a\xE2\x81\xA6z"}) {
    EXPECT_EQ(Printable(text).find(text), std::string::npos);
    EXPECT_FALSE(CheckName("name", text).ok());
  }
  EXPECT_TRUE(CheckName("name", "20\xE2\x82\xAC").ok());
}

TEST(PrintableTest, CutsAtTheLimit) {
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
  EXPECT_EQ(Printable("mod\xC3\xA8le", 4), "mod...");
  EXPECT_EQ(Printable("\x80\x80\x80", 2), "...");
}

}  // namespace
}  // namespace heapbroker

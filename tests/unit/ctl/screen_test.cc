// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace heapbroker {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// What a terminal shows of it.
std::string Shown(const std::string& painted) {
  return absl::StrReplaceAll(
      painted,
      {{"\x1b[?7l", ""}, {"\x1b[?7h", ""}, {"\x1b[H", ""}, {"\x1b[K", ""}, {"\x1b[J", ""}});
}

TEST(RepaintTest, OverwritesLineByLineAndClearsTheRest) {
  EXPECT_EQ(Repaint("a\nbc\n", 24), "\x1b[?7l\x1b[Ha\x1b[K\nbc\x1b[K\n\x1b[J\x1b[?7h");
}

TEST(RepaintTest, WhatDoesNotFitIsCountedOnTheLastRow) {
  std::string text;
  for (int i = 1; i <= 10; ++i) absl::StrAppend(&text, i, "\n");
  EXPECT_EQ(Shown(Repaint(text, 11)), text);
  EXPECT_EQ(Shown(Repaint(text, 5)), "1\n2\n3\n... 7 more lines: make the window higher\n");
}

TEST(RepaintTest, AnyTerminalIsHighEnoughForALine) {
  for (const size_t rows : {0, 1, 2}) {
    EXPECT_EQ(Shown(Repaint("1\n2\n3\n", rows)), "... 3 more lines: make the window higher\n");
  }
}

TEST(RepaintTest, LinesWrapAgainAfterwards) {
  EXPECT_THAT(Repaint("a\n", 24), StartsWith("\x1b[?7l"));
  EXPECT_THAT(Repaint("a\n", 24), EndsWith("\x1b[?7h"));
}

}  // namespace
}  // namespace heapbroker

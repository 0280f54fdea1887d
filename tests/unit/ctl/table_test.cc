// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/table.h"

#include <gtest/gtest.h>

namespace heapbroker {
namespace {

using Align = Table::Align;

TEST(TableTest, NumbersEndAndTextBeginsInOneColumn) {
  Table table({{"name", Align::kLeft}, {"bytes"}});
  table.AddRow({"a", "1.0 MiB"});
  table.AddRow({"longer", "512 B"});
  EXPECT_EQ(table.Render("> "),
            "> name      bytes\n"
            "> a       1.0 MiB\n"
            "> longer    512 B\n");
}

TEST(TableTest, NoLineEndsInBlanks) {
  Table table({{"id"}, {"name", Align::kLeft}});
  table.AddRow({"1", "a long name"});
  table.AddRow({"2", ""});
  EXPECT_EQ(table.Render(), "id  name\n 1  a long name\n 2\n");
}

TEST(TableTest, ColumnsOfZerosAreLeftOutWhereTheyMayBe) {
  Table table({{"name", Align::kLeft},
               {"a", Align::kRight, Table::Show::kWhereUsed},
               {"b", Align::kRight, Table::Show::kWhereUsed},
               {"c"}});
  table.AddRow({"x", "0 B", "0", "0"});
  table.AddRow({"y", "-", "7", "0"});
  EXPECT_EQ(table.Render(), "name  b  c\nx     0  0\ny     7  0\n");
  EXPECT_TRUE(table.used());
}

TEST(TableTest, ATableOfNothingButZerosIsUnused) {
  Table table({{"name", Align::kLeft}, {"a", Align::kRight, Table::Show::kWhereUsed}});
  table.AddRow({"x", "0"});
  EXPECT_FALSE(table.used());
  EXPECT_EQ(table.Render("  "), "  name\n  x\n");
}

TEST(ShortenTest, TheMiddleGivesWay) {
  EXPECT_EQ(Shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(Shorten("abcdefg", 6), "ab…efg");
  EXPECT_EQ(Shorten("abcdefg", 3), "a…g");
}

TEST(ShortenTest, CutsBetweenCodePoints) {
  EXPECT_EQ(Shorten("äöüßéèê", 5), "äö…èê");
  EXPECT_EQ(DisplayWidth(Shorten("äöüßéèê", 4)), 4u);
}

TEST(TableTest, NamesOutsideAsciiKeepTheColumns) {
  Table table({{"name", Align::kLeft}, {"n"}});
  table.AddRow({"Zürich", "1"});
  table.AddRow({"Berlin", "2"});
  EXPECT_EQ(table.Render(), "name    n\nZürich  1\nBerlin  2\n");
}

}  // namespace
}  // namespace heapbroker

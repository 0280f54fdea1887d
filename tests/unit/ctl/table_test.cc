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

TEST(TableTest, NamesOutsideAsciiKeepTheColumns) {
  Table table({{"name", Align::kLeft}, {"n"}});
  table.AddRow({"Zürich", "1"});
  table.AddRow({"Berlin", "2"});
  EXPECT_EQ(table.Render(), "name    n\nZürich  1\nBerlin  2\n");
}

}  // namespace
}  // namespace heapbroker

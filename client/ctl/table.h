// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Columns of text under headings.
#ifndef CLIENT_CTL_TABLE_H_
#define CLIENT_CTL_TABLE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace heapbroker {

// Columns that `text` takes in a terminal: one for each code point of valid
// UTF-8. East Asian wide characters take two there; they cost the alignment of
// their row and nothing else.
size_t DisplayWidth(absl::string_view text);

// `text` in at most `width` columns: the middle of a longer one gives way to an
// ellipsis, since names of pools differ at both ends. `width` is at least 3.
std::string Shorten(absl::string_view text, size_t width);

// Collects rows and lines them up. Not thread-safe.
class Table {
 public:
  enum class Align { kLeft, kRight };  // Text reads from the left, numbers from the right.
  // Columns of zeros tell little and take room: kWhereUsed leaves one out whose
  // cells are all "0", "0 B", "-" or empty.
  enum class Show { kAlways, kWhereUsed };
  struct Column {
    std::string heading;
    Align align = Align::kRight;
    Show show = Show::kAlways;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column, fit for a terminal: see Printable().
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // False where all columns but those that are always shown are left out.
  bool used() const;

  // Headings and rows, a line each, two blanks between columns and none at a
  // line's end.
  std::string Render(const std::string& indent = "") const;

 private:
  // Width of the widest cell; empty for a column that is left out.
  std::vector<std::optional<size_t>> Widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace heapbroker
#endif  // CLIENT_CTL_TABLE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/table.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Where in `text` its column number `column` begins, from 0.
size_t OffsetOfColumn(absl::string_view text, size_t column) {
  size_t offset = 0;
  for (size_t seen = 0; offset < text.size(); ++offset) {
    if (IsContinuation(text[offset])) continue;
    if (seen == column) break;
    ++seen;
  }
  return offset;
}

bool SaysNothing(const std::string& cell) {
  return cell.empty() || cell == "0" || cell == "0 B" || cell == "-";
}

}  // namespace

size_t DisplayWidth(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string Shorten(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const size_t tail = width / 2;
  const size_t head = width - 1 - tail;
  return absl::StrCat(text.substr(0, OffsetOfColumn(text, head)), "…",
                      text.substr(OffsetOfColumn(text, DisplayWidth(text) - tail)));
}

std::vector<std::optional<size_t>> Table::Widths() const {
  std::vector<std::optional<size_t>> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = DisplayWidth(columns_[i].heading);
    bool used = columns_[i].show == Show::kAlways;
    for (const std::vector<std::string>& row : rows_) {
      width = std::max(width, DisplayWidth(row[i]));
      used = used || !SaysNothing(row[i]);
    }
    widths.push_back(used ? std::optional<size_t>(width) : std::nullopt);
  }
  return widths;
}

bool Table::used() const {
  const std::vector<std::optional<size_t>> widths = Widths();
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].show == Show::kWhereUsed && widths[i]) return true;
  }
  return false;
}

std::string Table::Render(const std::string& indent) const {
  const std::vector<std::optional<size_t>> widths = Widths();
  std::string text;
  const auto add_line = [&](const auto& cell) {
    const size_t begin = text.size();
    text += indent;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!widths[i]) continue;
      if (text.size() > begin + indent.size()) text += "  ";
      const std::string padding(*widths[i] - DisplayWidth(cell(i)), ' ');
      text += columns_[i].align == Align::kLeft ? cell(i) + padding : padding + cell(i);
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
  };
  add_line([&](size_t i) { return columns_[i].heading; });
  for (const std::vector<std::string>& row : rows_) add_line([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace heapbroker

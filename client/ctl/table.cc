// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/table.h"

#include <algorithm>
#include <cstdint>

namespace heapbroker {

size_t DisplayWidth(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<uint8_t>(c) & 0xC0) != 0x80;  // Not a continuation byte.
  }));
}

std::string Table::Render(const std::string& indent) const {
  std::vector<std::string> headings;
  for (const Column& column : columns_) headings.push_back(column.heading);
  std::vector<std::vector<std::string>> lines = {headings};
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(line[i]));
    }
  }

  std::string text;
  for (const auto& line : lines) {
    text += indent;
    for (size_t i = 0; i < line.size() && i < widths.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(line[i]), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::kLeft ? line[i] + padding : padding + line[i];
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
  }
  return text;
}

}  // namespace heapbroker

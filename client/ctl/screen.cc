// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/screen.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace heapbroker {
namespace {

// Sequences of ECMA-48, and DEC's private mode 7: whether long lines are wrapped.
constexpr char kHome[] = "\x1b[H";
constexpr char kClearLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";
constexpr char kNoWrap[] = "\x1b[?7l";
constexpr char kWrap[] = "\x1b[?7h";

}  // namespace

std::string Repaint(absl::string_view text, size_t rows) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  lines.pop_back();  // Behind the last newline.
  // The cursor's row, below the last line, belongs to the shell afterwards.
  const size_t room = std::max<size_t>(rows, 2) - 1;
  std::string more;
  if (lines.size() > room) {
    more = absl::StrCat("... ", lines.size() - room + 1, " more lines: make the window higher");
    lines.resize(room - 1);
    lines.push_back(more);
  }
  std::string out = absl::StrCat(kNoWrap, kHome);
  for (const absl::string_view line : lines) absl::StrAppend(&out, line, kClearLine, "\n");
  absl::StrAppend(&out, kClearBelow, kWrap);
  return out;
}

}  // namespace heapbroker

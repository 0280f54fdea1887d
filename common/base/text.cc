// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/base/text.h"

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

struct Lead {
  size_t trailing;    // Continuation bytes that follow.
  uint8_t low, high;  // What the first of them must lie between.
};

// The well-formed sequences of the Unicode standard, table 3-7.
std::optional<Lead> ReadLead(uint8_t byte) {
  if (byte < 0x80) return Lead{0, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return Lead{1, 0x80, 0xBF};
  if (byte == 0xE0) return Lead{2, 0xA0, 0xBF};
  if (byte == 0xED) return Lead{2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return Lead{2, 0x80, 0xBF};
  if (byte == 0xF0) return Lead{3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return Lead{3, 0x80, 0xBF};
  if (byte == 0xF4) return Lead{3, 0x80, 0x8F};
  return std::nullopt;
}

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// U+2028 to U+202E and U+2066 to U+2069: line separators, and what turns the
// direction of the text after it. `at` is the first of three bytes.
bool IsLineOrDirection(absl::string_view text, size_t at) {
  if (text.size() - at < 3 || static_cast<uint8_t>(text[at]) != 0xE2) return false;
  const auto second = static_cast<uint8_t>(text[at + 1]);
  const auto third = static_cast<uint8_t>(text[at + 2]);
  return (second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

// C0, DEL and C1 (U+0080 to U+009F, encoded as C2 80 to C2 9F), and the above.
std::optional<size_t> FindControlCharacter(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x20 || byte == 0x7F || IsLineOrDirection(text, i)) return i;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const std::optional<Lead> lead = ReadLead(static_cast<uint8_t>(text[i]));
    if (!lead || text.size() - i <= lead->trailing) return i;
    for (size_t k = 1; k <= lead->trailing; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + k]);
      const uint8_t low = k == 1 ? lead->low : 0x80;
      const uint8_t high = k == 1 ? lead->high : 0xBF;
      if (byte < low || byte > high) return i;
    }
    i += 1 + lead->trailing;
  }
  return std::nullopt;
}

absl::Status CheckName(absl::string_view field, absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": has ", name.size(), " bytes; allowed are 1 to ", kMaxNameBytes));
  }
  if (const auto position = FindInvalidUtf8(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": is not valid UTF-8 at byte ", *position));
  }
  if (const auto position = FindControlCharacter(name)) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": has a control character at byte ",
                                                   *position, "; names are printable text"));
  }
  return absl::OkStatus();
}

std::string Printable(absl::string_view text, size_t limit) {
  const bool cut = text.size() > limit;
  if (cut) {
    // In front of a character, not in the middle of one.
    while (limit > 0 && IsContinuation(text[limit])) --limit;
    text = text.substr(0, limit);
  }
  const bool clean = !FindInvalidUtf8(text) && !FindControlCharacter(text);
  std::string shown = clean ? std::string(text) : absl::CHexEscape(text);
  if (cut) shown += "...";
  return shown;
}

absl::Status InvalidTextError(absl::string_view text, absl::string_view at, absl::string_view why) {
  // Longer than a name: a line of configuration should be seen whole.
  constexpr size_t kMaxQuotedBytes = 512;
  return absl::InvalidArgumentError(absl::StrCat("\"", Printable(text, kMaxQuotedBytes),
                                                 "\" at position ", at.data() - text.data(), ": ",
                                                 why));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/base/byte_size.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t factor;
};

constexpr Unit kUnits[] = {
    {"", 1},
    {"b", 1},
    {"kb", 1000},
    {"mb", uint64_t{1000} * 1000},
    {"gb", uint64_t{1000} * 1000 * 1000},
    {"tb", uint64_t{1000} * 1000 * 1000 * 1000},
    {"kib", uint64_t{1} << 10},
    {"mib", uint64_t{1} << 20},
    {"gib", uint64_t{1} << 30},
    {"tib", uint64_t{1} << 40},
};

// `at` points into `text`.
absl::Status Bad(absl::string_view text, absl::string_view at, absl::string_view why) {
  return InvalidTextError(
      text, at,
      absl::StrCat(why,
                   "; a size is a whole number, of bytes or of one of b, kb, mb, gb, tb (powers of "
                   "1000), kib, mib, gib, tib (powers of 1024)"));
}

}  // namespace

absl::StatusOr<Bytes> ParseByteSize(absl::string_view text) { return ParseByteSizeIn(text, text); }

absl::StatusOr<Bytes> ParseByteSizeIn(absl::string_view text, absl::string_view part) {
  uint64_t number = 0;
  size_t i = 0;
  for (; i < part.size() && absl::ascii_isdigit(static_cast<unsigned char>(part[i])); ++i) {
    const uint64_t digit = static_cast<uint64_t>(part[i] - '0');
    if (number > (UINT64_MAX - digit) / 10) return Bad(text, part, "is over 2^64 - 1");
    number = number * 10 + digit;
  }
  if (i == 0) return Bad(text, part, "a digit was expected");
  const size_t unit_at = i < part.size() && part[i] == ' ' ? i + 1 : i;
  const absl::string_view unit_text = part.substr(unit_at);
  const std::string name = absl::AsciiStrToLower(unit_text);
  if (name.empty() && unit_at != i) return Bad(text, unit_text, "a unit was expected");
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    if (number > UINT64_MAX / unit.factor) return Bad(text, part, "is over 2^64 - 1 bytes");
    return Bytes(number * unit.factor);
  }
  return Bad(text, unit_text, "this is no unit");
}

}  // namespace heapbroker

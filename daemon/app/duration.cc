// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/duration.h"

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);

struct Unit {
  absl::string_view name;
  int64_t milliseconds;
};
constexpr std::array<Unit, 8> kUnits = {{{"ms", 1},
                                         {"s", 1000},
                                         {"sec", 1000},
                                         {"m", 60000},
                                         {"min", 60000},
                                         {"h", 3600000},
                                         {"d", 86400000},
                                         {"day", 86400000}}};

std::optional<absl::Duration> UnitOf(absl::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return absl::Milliseconds(unit.milliseconds);
  }
  return std::nullopt;
}

// Takes what satisfies `matches` off the front.
template <typename Matches>
absl::string_view TakeWhile(absl::string_view& text, Matches matches) {
  size_t size = 0;
  while (size < text.size() && matches(static_cast<unsigned char>(text[size]))) ++size;
  const absl::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDurationOption(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  if (rest == "0") return absl::ZeroDuration();
  absl::Duration sum;
  do {
    const absl::string_view at = rest;
    const absl::string_view digits = TakeWhile(rest, absl::ascii_isdigit);
    int64_t number = 0;
    if (!absl::SimpleAtoi(digits, &number)) {
      return InvalidTextError(text, at, "a whole number and a unit are expected, as in 10min");
    }
    TakeWhile(rest, absl::ascii_isspace);
    const absl::string_view unit_at = rest;
    const std::optional<absl::Duration> unit = UnitOf(TakeWhile(rest, absl::ascii_isalpha));
    if (!unit) {
      return InvalidTextError(text, unit_at, "a unit is expected: ms, s, sec, m, min, h or d");
    }
    sum += number * *unit;
    if (sum > kLongest) return InvalidTextError(text, at, "that is over 100 years; 0 means never");
    TakeWhile(rest, absl::ascii_isspace);
  } while (!rest.empty());
  return sum;
}

}  // namespace heapbroker

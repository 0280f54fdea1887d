// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/pool_spec.h"

#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/byte_size.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

constexpr uint64_t kMaxCount = UINT32_MAX;
constexpr absl::string_view kNotation =
    "heap_key=max_allocation_size;max_allocation_capacity;max_free_allocation_count";

absl::string_view Trim(absl::string_view text) { return absl::StripAsciiWhitespace(text); }

bool IsDefault(absl::string_view value) { return value.empty() || value == "*"; }

PoolSpec EveryType() {
  PoolSpec spec;
  spec.text = "*";
  spec.every_type = true;
  return spec;
}

PoolSpec Unbounded() {
  PoolSpec spec = EveryType();
  spec.limits.max_free_allocation_count = UINT64_MAX;
  return spec;
}

// "unbounded" alone, or as the key of something that would limit it.
bool SaysUnbounded(absl::string_view pair) {
  return absl::EqualsIgnoreCase(Trim(pair.substr(0, pair.find('='))), "unbounded");
}

absl::Status NotAlone(absl::string_view text, absl::string_view at) {
  return InvalidTextError(text, at,
                          "\"unbounded\" stands alone: it takes no limits, and no pool beside it "
                          "would be reached");
}

absl::Status Named(absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::Status ReadSize(absl::string_view pair, absl::string_view value, absl::string_view name,
                      Bytes& size) {
  if (IsDefault(value)) return absl::OkStatus();
  const absl::StatusOr<Bytes> read = ParseByteSizeIn(pair, value);
  if (!read.ok()) return Named(name, read.status());
  size = *read;
  return absl::OkStatus();
}

absl::Status ReadCount(absl::string_view pair, absl::string_view value, uint64_t& count) {
  if (IsDefault(value)) return absl::OkStatus();
  uint64_t read = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(value[i]));
    if (digit) read = read * 10 + static_cast<uint64_t>(value[i] - '0');
    if (!digit || read > kMaxCount) {
      return Named("max_free_allocation_count",
                   InvalidTextError(
                       pair, digit ? value : value.substr(i),
                       absl::StrCat("a count is a whole number from 0 to ", kMaxCount,
                                    ", or \"*\" for ", PoolLimits().max_free_allocation_count)));
    }
  }
  count = read;
  return absl::OkStatus();
}

// `values` is what follows the "=" of `pair`.
absl::Status ReadLimits(absl::string_view pair, absl::string_view values, PoolLimits& limits) {
  if (const size_t second = values.find('='); second != values.npos) {
    return InvalidTextError(
        pair, values.substr(second),
        absl::StrCat("a second \"=\"; a pair is ", kNotation, ", and \",\" parts pairs"));
  }
  std::vector<absl::string_view> parts = absl::StrSplit(values, ';');
  if (parts.size() > 3) {
    return InvalidTextError(pair, parts[3],
                            absl::StrCat("three limits are all there are: a pair is ", kNotation,
                                         ", \",\" parts pairs"));
  }
  parts.resize(3, values.substr(values.size()));
  HB_RETURN_IF_ERROR(
      ReadSize(pair, Trim(parts[0]), "max_allocation_size", limits.max_allocation_size));
  HB_RETURN_IF_ERROR(
      ReadSize(pair, Trim(parts[1]), "max_allocation_capacity", limits.max_allocation_capacity));
  return ReadCount(pair, Trim(parts[2]), limits.max_free_allocation_count);
}

// Lower case, and no white space, which would break the tables that names are in.
std::string Canonical(absl::string_view key) {
  std::string canonical;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isspace(byte)) canonical.push_back(absl::ascii_tolower(byte));
  }
  return canonical;
}

absl::StatusOr<PoolSpec> ParsePair(absl::string_view pair) {
  const size_t equals = pair.find('=');
  const absl::string_view key = Trim(pair.substr(0, equals));
  PoolSpec spec;
  HB_ASSIGN_OR_RETURN(spec.wish, ParseMemoryTypeWishIn(pair, key));
  spec.text = Canonical(key);
  spec.every_type = IsDefault(Trim(key.substr(0, key.find(';'))));
  if (equals != pair.npos) {
    HB_RETURN_IF_ERROR(ReadLimits(pair, pair.substr(equals + 1), spec.limits));
  }
  return spec;
}

}  // namespace

absl::StatusOr<std::vector<PoolSpec>> ParsePoolSpecs(absl::string_view text) {
  if (Trim(text).empty()) return std::vector<PoolSpec>{EveryType()};
  std::vector<absl::string_view> pairs = absl::StrSplit(text, ',');
  if (pairs.size() > 1 && Trim(pairs.back()).empty()) pairs.pop_back();
  if (pairs.size() == 1 && absl::EqualsIgnoreCase(Trim(pairs[0]), "unbounded")) {
    return std::vector<PoolSpec>{Unbounded()};
  }
  std::vector<PoolSpec> specs;
  for (absl::string_view untrimmed : pairs) {
    const absl::string_view pair = Trim(untrimmed);
    if (pair.empty()) {
      return InvalidTextError(text, pair,
                              absl::StrCat("a pool was expected at this \",\": ", kNotation));
    }
    if (SaysUnbounded(pair)) return NotAlone(text, pair);
    HB_ASSIGN_OR_RETURN(PoolSpec spec, ParsePair(pair));
    specs.push_back(std::move(spec));
  }
  return specs;
}

absl::StatusOr<std::vector<PoolSpec>> ParsePoolValues(absl::Span<const std::string> values) {
  if (values.empty()) return ParsePoolSpecs("");
  std::vector<PoolSpec> all;
  for (const std::string& value : values) {
    HB_ASSIGN_OR_RETURN(std::vector<PoolSpec> specs, ParsePoolSpecs(value));
    if (values.size() > 1 && SaysUnbounded(value)) return NotAlone(value, value);
    all.insert(all.end(), std::make_move_iterator(specs.begin()),
               std::make_move_iterator(specs.end()));
  }
  return all;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/memory_type_wish.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

struct Name {
  absl::string_view name;
  bool MemoryTypeWish::*field;  // Null where every memory type has it.
};

constexpr Name kMemoryTypeNames[] = {
    {"device_local", &MemoryTypeWish::device_local},
    {"host_local", &MemoryTypeWish::host_local},
    {"host_visible", &MemoryTypeWish::host_visible},
    {"host_coherent", &MemoryTypeWish::host_coherent},
    {"host_cached", &MemoryTypeWish::host_cached},
    {"device_visible", nullptr},
    {"optimal", nullptr},
    {"transient", &MemoryTypeWish::transient},
};

constexpr Name kUsageNames[] = {
    {"transfer", nullptr},
    {"dispatch", nullptr},
    {"mapping", &MemoryTypeWish::host_visible},
};

std::string Listed(absl::Span<const Name> names) {
  return absl::StrJoin(names, ", ",
                       [](std::string* out, const Name& name) { absl::StrAppend(out, name.name); });
}

// One half of a key, and what to call a name of it in an error.
struct Half {
  absl::string_view names;
  absl::Span<const Name> known;
  absl::string_view noun;
};

absl::Status Read(absl::string_view text, const Half& half, MemoryTypeWish& wish) {
  const absl::string_view names = absl::StripAsciiWhitespace(half.names);
  if (names.empty() || names == "*") return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(names, '|')) {
    const absl::string_view name = absl::StripAsciiWhitespace(part);
    const auto found = std::find_if(
        half.known.begin(), half.known.end(),
        [name](const Name& known) { return absl::EqualsIgnoreCase(known.name, name); });
    if (found == half.known.end()) {
      return InvalidTextError(
          text, name,
          absl::StrCat("\"", Printable(name), "\" is no ", half.noun, "; known are ",
                       Listed(half.known), ", joined by \"|\", or \"*\" by itself"));
    }
    if (found->field != nullptr) wish.*found->field = true;
  }
  return absl::OkStatus();
}

}  // namespace

bool Satisfies(const MemoryTypeInfo& type, const MemoryTypeWish& wish) {
  const bool host_local = type.host_visible && type.host_coherent && !type.device_local;
  return (!wish.device_local || type.device_local) && (!wish.host_visible || type.host_visible) &&
         (!wish.host_coherent || type.host_coherent) && (!wish.host_cached || type.host_cached) &&
         (!wish.host_local || host_local);
}

absl::StatusOr<MemoryTypeWish> ParseMemoryTypeWish(absl::string_view text) {
  return ParseMemoryTypeWishIn(text, text);
}

absl::StatusOr<MemoryTypeWish> ParseMemoryTypeWishIn(absl::string_view text,
                                                     absl::string_view key) {
  if (absl::StripAsciiWhitespace(key).empty()) {
    return InvalidTextError(text, key,
                            absl::StrCat("a heap key was expected: memory_type[;usage], of ",
                                         Listed(kMemoryTypeNames), ", joined by \"|\", or \"*\""));
  }
  const std::vector<absl::string_view> halves = absl::StrSplit(key, ';');
  if (halves.size() > 2) {
    return InvalidTextError(text, halves[2],
                            "a heap key is memory_type[;usage]; several names are joined by \"|\", "
                            "and limits follow a \"=\"");
  }
  MemoryTypeWish wish;
  HB_RETURN_IF_ERROR(Read(text, {halves[0], kMemoryTypeNames, "memory type"}, wish));
  if (halves.size() == 2) HB_RETURN_IF_ERROR(Read(text, {halves[1], kUsageNames, "usage"}, wish));
  return wish;
}

std::string KnownMemoryTypeNames() { return Listed(kMemoryTypeNames); }

std::string MemoryTypeText(const MemoryTypeInfo& type) {
  std::vector<absl::string_view> names;
  if (type.device_local) names.push_back("device_local");
  if (type.host_visible) names.push_back("host_visible");
  if (type.host_coherent) names.push_back("host_coherent");
  if (type.host_cached) names.push_back("host_cached");
  return names.empty() ? "no property" : absl::StrJoin(names, "|");
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/cells.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/ctl/table.h"
#include "common/base/text.h"
#include "heapbroker/units.h"

namespace heapbroker {
namespace {

// Leaves room for the figures beside it on 80 columns.
constexpr size_t kPoolNameWidth = 22;

std::string TypeName(v1::DeviceType type) {
  switch (type) {
    case v1::DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated GPU";
    case v1::DEVICE_TYPE_DISCRETE_GPU:
      return "discrete GPU";
    case v1::DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual GPU";
    case v1::DEVICE_TYPE_CPU:
      return "CPU";
    default:
      return "other";
  }
}

}  // namespace

std::string Number(uint64_t value) { return absl::StrCat(value); }

std::string Size(uint64_t bytes) { return FormatBytes(Bytes(bytes)); }

std::string SizeLimit(uint64_t bytes) {
  return bytes == std::numeric_limits<uint64_t>::max() ? "-" : Size(bytes);
}

std::string NumberLimit(uint64_t value) {
  return value == std::numeric_limits<uint64_t>::max() ? "-" : Number(value);
}

std::string Count(uint64_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

std::string FormatAge(absl::Duration age) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(age), 0);
  const int64_t minutes = seconds / 60;
  const int64_t hours = minutes / 60;
  if (minutes == 0) return absl::StrCat(seconds, " s");
  if (hours == 0) return absl::StrCat(minutes, " min ", seconds % 60, " s");
  if (hours < 24) return absl::StrCat(hours, " h ", minutes % 60, " min");
  return absl::StrCat(hours / 24, " d ", hours % 24, " h");
}

std::string FormatRate(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f %%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

std::string NameOrDash(const std::string& name) { return name.empty() ? "-" : Printable(name); }

std::string PoolCell(const std::string& name) { return Shorten(Printable(name), kPoolNameWidth); }

std::string HandleTypeName(v1::HandleType type) {
  switch (type) {
    case v1::HANDLE_TYPE_OPAQUE_FD:
      return "opaque fd";
    case v1::HANDLE_TYPE_DMA_BUF:
      return "dma-buf";
    default:
      return "unknown";  // A newer daemon's.
  }
}

std::string MemoryPropertyNames(uint32_t flags) {
  constexpr const char* kNames[] = {"device_local", "host_visible", "host_coherent", "host_cached",
                                    "lazily_allocated"};
  std::vector<std::string> names;
  for (size_t bit = 0; bit < std::size(kNames); ++bit) {
    if ((flags & (1u << bit)) != 0) names.push_back(kNames[bit]);
  }
  return names.empty() ? "-" : absl::StrJoin(names, "|");
}

std::string LimitName(v1::MemoryRefusal::Limit limit) {
  switch (limit) {
    case v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_COUNT:
      return "device";
    case v1::MemoryRefusal::LIMIT_DESCRIPTORS:
      return "descriptors";
    case v1::MemoryRefusal::LIMIT_MEMORY_MAPS:
      return "mappings";
    default:
      return absl::StrCat("limit ", static_cast<int>(limit));  // A newer daemon's.
  }
}

std::string DeviceHeadline(const v1::Device& device) {
  std::string text =
      absl::StrCat("device ", device.index(), ": ", Printable(device.name()), ", ",
                   TypeName(device.type()), device.software() ? " [software]" : "", "\n");
  if (device.software()) {
    absl::StrAppend(&text, kIndent,
                    "software: runs on the CPU and is no boundary between its users\n");
  }
  return text;
}

}  // namespace heapbroker

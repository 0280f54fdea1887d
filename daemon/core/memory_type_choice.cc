// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/memory_type_choice.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/memory_type_wish.h"

namespace heapbroker {
namespace {

bool HasWhatIsNeeded(const MemoryTypeInfo& type, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDeviceLocal:
      return type.device_local;
    case MemoryKind::kHostVisible:
      return type.host_visible && type.host_coherent;
    case MemoryKind::kHostCached:
      return type.host_visible;
    case MemoryKind::kDeviceLocalHostVisible:
      return type.device_local && type.host_visible;
  }
  return false;
}

// Small host-visible windows into device memory are scarce, so device-local
// requests keep out of them where they can, and uploads do, too.
int Preference(const MemoryTypeInfo& type, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDeviceLocal:
      return type.host_visible ? 0 : 1;
    case MemoryKind::kHostVisible:
      return (type.device_local ? 0 : 2) + (type.host_cached ? 0 : 1);
    case MemoryKind::kHostCached:
      return (type.host_cached ? 2 : 0) + (type.host_coherent ? 1 : 0);
    case MemoryKind::kDeviceLocalHostVisible:
      return type.host_coherent ? 1 : 0;
  }
  return 0;
}

// How well a type serves a wish; unset where it does not.
std::optional<int> TierOf(const DeviceInfo& device, uint32_t index, const MemoryWish& wish) {
  const MemoryTypeInfo& type = device.memory_types[index];
  if (const auto* kind = std::get_if<MemoryKind>(&wish)) {
    if (!HasWhatIsNeeded(type, *kind)) return std::nullopt;
    return Preference(type, *kind);
  }
  if (const auto* exact = std::get_if<MemoryTypeIndex>(&wish)) {
    if (exact->index != index) return std::nullopt;
    return 0;
  }
  // What was named is all that matters: the device's order decides.
  if (!Satisfies(type, std::get<MemoryTypeWish>(wish))) return std::nullopt;
  return 0;
}

std::vector<MemoryTypeChoice> Find(const DeviceInfo& device, const MemoryWish& wish,
                                   std::optional<HandleType> handle_type) {
  std::vector<MemoryTypeChoice> found;
  for (uint32_t i = 0; i < device.memory_types.size(); ++i) {
    const HandleTypes& exportable = device.memory_types[i].exportable;
    if (handle_type ? !exportable.has(*handle_type) : !exportable.any()) continue;
    if (const std::optional<int> tier = TierOf(device, i, wish)) found.push_back({i, *tier});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.tier > b.tier; });
  return found;
}

// What the device has for requests of that handle type.
std::string Offered(const DeviceInfo& device, std::optional<HandleType> handle_type) {
  std::vector<std::string> offered;
  for (uint32_t i = 0; i < device.memory_types.size(); ++i) {
    const MemoryTypeInfo& type = device.memory_types[i];
    if (handle_type ? !type.exportable.has(*handle_type) : !type.exportable.any()) continue;
    offered.push_back(absl::StrCat(i, " (", MemoryTypeText(type), ")"));
  }
  return offered.empty() ? "none" : absl::StrJoin(offered, ", ");
}

}  // namespace

absl::string_view HandleTypeName(HandleType type) {
  return type == HandleType::kOpaqueFd ? "opaque descriptor" : "dma-buf";
}

absl::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDeviceLocal:
      return "device_local";
    case MemoryKind::kHostVisible:
      return "host_visible";
    case MemoryKind::kHostCached:
      return "host_cached";
    case MemoryKind::kDeviceLocalHostVisible:
      return "device_local|host_visible";
  }
  return "unknown";
}

std::string MemoryWishName(const MemoryWish& wish) {
  if (const auto* kind = std::get_if<MemoryKind>(&wish)) return std::string(MemoryKindName(*kind));
  if (const auto* type = std::get_if<MemoryTypeIndex>(&wish)) {
    return absl::StrCat("memory type ", type->index);
  }
  const auto& properties = std::get<MemoryTypeWish>(wish);
  std::vector<absl::string_view> names;
  if (properties.device_local) names.push_back("device_local");
  if (properties.host_local) names.push_back("host_local");
  if (properties.host_visible) names.push_back("host_visible");
  if (properties.host_coherent) names.push_back("host_coherent");
  if (properties.host_cached) names.push_back("host_cached");
  return names.empty() ? "any memory" : absl::StrJoin(names, "|");
}

absl::StatusOr<MemoryTypeChoices> ChooseMemoryTypes(const DeviceInfo& device,
                                                    const MemoryWish& wish,
                                                    std::optional<HandleType> handle_type) {
  if (const auto* exact = std::get_if<MemoryTypeIndex>(&wish);
      exact != nullptr && exact->index >= device.memory_types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_type_index: is ", exact->index, "; device ", device.index, " has ",
                     device.memory_types.size(), " memory types, counted from 0"));
  }
  if (!handle_type) {
    for (HandleType type : {HandleType::kOpaqueFd, HandleType::kDmaBuf}) {
      MemoryTypeChoices choices{type, Find(device, wish, type)};
      if (!choices.types.empty()) return choices;
    }
  } else {
    MemoryTypeChoices choices{*handle_type, Find(device, wish, handle_type)};
    if (!choices.types.empty()) return choices;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "device ", device.index, " (", device.name, ") has no ", MemoryWishName(wish),
      " that it can export", handle_type ? " as " : "",
      handle_type ? HandleTypeName(*handle_type) : "", "; exportable memory types there",
      handle_type ? " as that" : "", ": ", Offered(device, handle_type)));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/memory_type_choice.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heapbroker {
namespace {

constexpr MemoryKind kAllKinds[] = {MemoryKind::kDeviceLocal, MemoryKind::kHostVisible,
                                    MemoryKind::kHostCached, MemoryKind::kDeviceLocalHostVisible};

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

std::optional<uint32_t> Find(const DeviceInfo& device, MemoryKind kind) {
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < device.memory_types.size(); ++i) {
    const MemoryTypeInfo& type = device.memory_types[i];
    if (!type.exportable.any() || !HasWhatIsNeeded(type, kind)) continue;
    if (!best || Preference(type, kind) > Preference(device.memory_types[*best], kind)) best = i;
  }
  return best;
}

}  // namespace

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

absl::StatusOr<uint32_t> ChooseMemoryType(const DeviceInfo& device, MemoryKind kind) {
  if (const std::optional<uint32_t> type = Find(device, kind)) return *type;
  std::string offered;
  for (MemoryKind other : kAllKinds) {
    if (Find(device, other)) {
      absl::StrAppend(&offered, offered.empty() ? "" : ", ", MemoryKindName(other));
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "kind: device ", device.index, " (", device.name, ") has no exportable memory type for ",
      MemoryKindName(kind), "; it has ", offered.empty() ? "none" : offered));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_choice.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace heapbroker {
namespace {

constexpr size_t kUuidDigits = size_t{2} * VK_UUID_SIZE;

absl::string_view TypeName(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete GPU";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated GPU";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual GPU";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "software";
    default:
      return "other type";
  }
}

// Lower is better.
int TypeRank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

std::string UuidDigits(const Uuid& uuid) {
  std::string digits;
  for (uint8_t byte : uuid) absl::StrAppend(&digits, absl::Hex(byte, absl::kZeroPad2));
  return digits;
}

std::string FormatUuid(const Uuid& uuid) {
  const std::string digits = UuidDigits(uuid);
  const absl::string_view d = digits;
  return absl::StrCat(d.substr(0, 8), "-", d.substr(8, 4), "-", d.substr(12, 4), "-",
                      d.substr(16, 4), "-", d.substr(20));
}

// The 32 digits in lower case, of either form of a UUID; empty for other text.
std::string ParseUuid(absl::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash_here = i == 8 || i == 13 || i == 18 || i == 23;
    if (text[i] == '-' && dash_here && text.size() == kUuidDigits + 4) continue;
    if (!absl::ascii_isxdigit(text[i])) return "";
    digits += absl::ascii_tolower(text[i]);
  }
  return digits.size() == kUuidDigits ? digits : "";
}

bool IsIndex(absl::string_view text) {
  return !text.empty() && text.size() < kUuidDigits &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

std::string Describe(absl::Span<const DeviceSnapshot> devices, size_t index) {
  const DeviceSnapshot& device = devices[index];
  std::string text = absl::StrCat(index, " = '", device.name, "' (", TypeName(device.type),
                                  ", UUID ", FormatUuid(device.device_uuid), ")");
  if (absl::Status usable = CheckUsable(device); !usable.ok()) {
    absl::StrAppend(&text, " which ", usable.message());
  }
  return text;
}

std::string List(absl::Span<const DeviceSnapshot> devices) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < devices.size(); ++i) lines.push_back(Describe(devices, i));
  return absl::StrCat("The devices are: ", absl::StrJoin(lines, "; "));
}

template <typename Predicate>
std::vector<size_t> Select(absl::Span<const DeviceSnapshot> devices, Predicate predicate) {
  std::vector<size_t> selected;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (predicate(devices[i])) selected.push_back(i);
  }
  return selected;
}

// All devices that `text` may mean.
std::vector<size_t> Match(absl::Span<const DeviceSnapshot> devices, const std::string& text) {
  if (IsIndex(text)) {
    uint64_t index = 0;
    if (!absl::SimpleAtoi(text, &index) || index >= devices.size()) return {};
    return {static_cast<size_t>(index)};
  }
  if (const std::string digits = ParseUuid(text); !digits.empty()) {
    return Select(devices, [&](const DeviceSnapshot& device) {
      return UuidDigits(device.device_uuid) == digits;
    });
  }
  std::vector<size_t> exact = Select(devices, [&](const DeviceSnapshot& device) {
    return absl::EqualsIgnoreCase(device.name, text);
  });
  if (!exact.empty()) return exact;
  return Select(devices, [&](const DeviceSnapshot& device) {
    return absl::StrContains(absl::AsciiStrToLower(device.name), absl::AsciiStrToLower(text));
  });
}

std::string SoftwareWarning(absl::string_view name, absl::string_view reason) {
  return absl::StrCat("'", name, "' is a software device", reason,
                      ": it computes on the processor, and it is no boundary between processes "
                      "that share its memory");
}

absl::StatusOr<DeviceChoice> ChooseNamed(absl::Span<const DeviceSnapshot> devices,
                                         const std::string& text, bool require_hardware) {
  const std::vector<size_t> matches = Match(devices, text);
  if (matches.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no device is '", text, "'; allowed are an index, a UUID, a name, or a part of a name. ",
        List(devices)));
  }
  if (matches.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' means ", matches.size(),
                                                   " devices (", absl::StrJoin(matches, ", "),
                                                   "); choose one by its index. ", List(devices)));
  }
  const size_t index = matches.front();
  const DeviceSnapshot& device = devices[index];
  if (absl::Status usable = CheckUsable(device); !usable.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("device '", device.name, "' ", usable.message(), ". ", List(devices)));
  }
  if (!device.software()) return DeviceChoice{index, ""};
  if (require_hardware) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", device.name, "' is a software device, and hardware is required. ", List(devices)));
  }
  return DeviceChoice{index, SoftwareWarning(device.name, ", as was asked for")};
}

absl::StatusOr<DeviceChoice> ChooseBest(absl::Span<const DeviceSnapshot> devices,
                                        bool require_hardware) {
  const std::vector<size_t> candidates = Select(devices, [&](const DeviceSnapshot& device) {
    return CheckUsable(device).ok() && !(require_hardware && device.software());
  });
  if (candidates.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("no ", require_hardware ? "hardware " : "",
                                                      "device can be used. ", List(devices), ". ",
                                                      kNoDeviceAdvice));
  }
  // The first of equals: min_element keeps the loader's order.
  const size_t index = *std::min_element(
      candidates.begin(), candidates.end(),
      [&](size_t a, size_t b) { return TypeRank(devices[a].type) < TypeRank(devices[b].type); });
  const DeviceSnapshot& device = devices[index];
  if (!device.software()) return DeviceChoice{index, ""};
  return DeviceChoice{
      index, absl::StrCat(
                 SoftwareWarning(device.name, ", used because no usable hardware device was found"),
                 ". ", List(devices), ". ", kNoDeviceAdvice)};
}

}  // namespace

absl::Status CheckUsable(const DeviceSnapshot& device) {
  if (device.api_version < VulkanInstance::kLowestApiVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("has only Vulkan ", VK_API_VERSION_MAJOR(device.api_version), ".",
                     VK_API_VERSION_MINOR(device.api_version), "; 1.1 or newer is needed"));
  }
  if (device.extensions.count(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("lacks the extension ", VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME));
  }
  const VkExternalMemoryFeatureFlags features = device.opaque_fd_buffers.externalMemoryFeatures;
  constexpr VkExternalMemoryFeatureFlags kNeeded =
      VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  if ((features & kNeeded) != kNeeded) {
    return absl::FailedPreconditionError(
        "cannot export and import the memory of buffers as opaque file descriptors");
  }
  // Blocks are cut by their holders, so none can belong to one buffer.
  if ((features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0) {
    return absl::FailedPreconditionError("exports only memory that is dedicated to one buffer");
  }
  if (!ChooseQueueFamily(device)) {
    return absl::FailedPreconditionError("has no queue that can write memory");
  }
  return absl::OkStatus();
}

std::optional<uint32_t> ChooseQueueFamily(const DeviceSnapshot& device) {
  struct Preference {
    VkQueueFlags has;
    VkQueueFlags lacks;
  };
  // Graphics and compute imply transfers without saying so.
  constexpr Preference kPreferences[] = {{VK_QUEUE_COMPUTE_BIT, VK_QUEUE_GRAPHICS_BIT},
                                         {VK_QUEUE_COMPUTE_BIT, 0},
                                         {VK_QUEUE_GRAPHICS_BIT, 0},
                                         {VK_QUEUE_TRANSFER_BIT, 0}};
  for (const Preference& preference : kPreferences) {
    for (size_t i = 0; i < device.queue_families.size(); ++i) {
      const VkQueueFamilyProperties& family = device.queue_families[i];
      if (family.queueCount > 0 && (family.queueFlags & preference.has) != 0 &&
          (family.queueFlags & preference.lacks) == 0) {
        return static_cast<uint32_t>(i);
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<DeviceChoice> ChooseDevice(absl::Span<const DeviceSnapshot> devices,
                                          const DeviceSelector& selector) {
  if (devices.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no Vulkan device. ", kNoDeviceAdvice));
  }
  const std::string text(absl::StripAsciiWhitespace(selector.text));
  return text.empty() ? ChooseBest(devices, selector.require_hardware)
                      : ChooseNamed(devices, text, selector.require_hardware);
}

}  // namespace heapbroker

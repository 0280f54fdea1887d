// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_choice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/device_identity.h"
#include "daemon/vulkan/handle_type.h"

namespace heapbroker {
namespace {

constexpr size_t kUuidDigits = size_t{2} * VK_UUID_SIZE;

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
      return absl::StrReplaceAll(FormatUuid(device.device_uuid), {{"-", ""}}) == digits;
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
        ListForPeople(devices)));
  }
  if (matches.size() > 1) {
    const auto describe = [&](std::string* out, size_t index) {
      absl::StrAppend(out, DescribeForPeople(devices, index));
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' means ", matches.size(), " devices: ", absl::StrJoin(matches, "; ", describe),
        ". Choose one by its index"));
  }
  const size_t index = matches.front();
  const DeviceSnapshot& device = devices[index];
  if (absl::Status usable = CheckUsable(device); !usable.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device '", device.name, "' ", usable.message(), ". ", ListForPeople(devices)));
  }
  if (!device.software()) return DeviceChoice{index, ""};
  if (require_hardware) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", device.name, "' is a software device, and hardware is required. ",
                     ListForPeople(devices)));
  }
  return DeviceChoice{index, SoftwareWarning(device.name, ", as was asked for")};
}

absl::StatusOr<DeviceChoice> ChooseBest(absl::Span<const DeviceSnapshot> devices,
                                        bool require_hardware) {
  const std::vector<size_t> candidates = Select(devices, [&](const DeviceSnapshot& device) {
    return CheckUsable(device).ok() && !(require_hardware && device.software());
  });
  if (candidates.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no ", require_hardware ? "hardware " : "", "device can be used. ",
                     ListForPeople(devices), ". ", kNoDeviceAdvice));
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
                 ". ", ListForPeople(devices), ". ", kNoDeviceAdvice)};
}

// All usable hardware, the best first; empty where there is none. Two drivers may
// show the same hardware: the first that the loader names serves it, or its memory
// would have two budgets.
std::vector<DeviceChoice> ChooseAllHardware(absl::Span<const DeviceSnapshot> devices) {
  std::vector<DeviceChoice> choices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].software() || !CheckUsable(devices[i]).ok()) continue;
    const auto same = std::find_if(choices.begin(), choices.end(), [&](const DeviceChoice& other) {
      return SameDevice(devices[other.index], devices[i]) ||
             SameHardware(devices[other.index], devices[i]);
    });
    if (same == choices.end()) {
      choices.push_back({i, ""});
      continue;
    }
    same->warning = absl::StrCat(same->warning, same->warning.empty() ? "" : ". ",
                                 DescribeForPeople(devices, i), " is the same hardware as ",
                                 DescribeForPeople(devices, same->index), " and is left out");
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [&](const DeviceChoice& a, const DeviceChoice& b) {
                     return TypeRank(devices[a.index].type) < TypeRank(devices[b.index].type);
                   });
  return choices;
}

// Of two that were named: an error if they are one device, a warning if they are
// one piece of hardware.
absl::Status CheckPair(absl::Span<const DeviceSnapshot> devices,
                       absl::Span<const std::string> selectors, const DeviceChoice& earlier,
                       size_t earlier_selector, DeviceChoice& later, size_t later_selector) {
  const DeviceSnapshot& a = devices[earlier.index];
  const DeviceSnapshot& b = devices[later.index];
  if (earlier.index == later.index || SameDevice(a, b)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", selectors[earlier_selector], "' and '", selectors[later_selector],
                     "' are the same device: ", DescribeForPeople(devices, earlier.index),
                     ". Name each device once"));
  }
  if (SameHardware(a, b)) {
    absl::StrAppend(&later.warning, later.warning.empty() ? "" : ". ", "'",
                    selectors[earlier_selector], "' and '", selectors[later_selector],
                    "' are the same hardware (", FormatPlace(b),
                    ") by two drivers: the budgets of both are of the same memory");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUsable(const DeviceSnapshot& device) {
  if (device.api_version < VulkanInstance::kLowestApiVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("has only Vulkan ", VK_API_VERSION_MAJOR(device.api_version), ".",
                     VK_API_VERSION_MINOR(device.api_version), "; 1.1 or newer is needed"));
  }
  if (!device.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) {
    return absl::FailedPreconditionError(
        absl::StrCat("lacks the extension ", VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME));
  }
  if (!ClaimedHandleTypes(device).usable.any()) {
    return absl::FailedPreconditionError(
        "can export and import the memory of buffers neither as opaque descriptors nor as "
        "dma-bufs");
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

absl::StatusOr<std::vector<DeviceChoice>> ChooseDevices(absl::Span<const DeviceSnapshot> devices,
                                                        absl::Span<const std::string> selectors,
                                                        bool require_hardware) {
  std::vector<DeviceChoice> choices;
  if (selectors.empty()) {
    choices = ChooseAllHardware(devices);
    if (!choices.empty()) return choices;
    HB_ASSIGN_OR_RETURN(DeviceChoice best, ChooseDevice(devices, {"", require_hardware}));
    choices.push_back(std::move(best));
    return choices;
  }
  for (size_t i = 0; i < selectors.size(); ++i) {
    HB_ASSIGN_OR_RETURN(DeviceChoice choice,
                        ChooseDevice(devices, {selectors[i], require_hardware}));
    for (size_t earlier = 0; earlier < i; ++earlier) {
      HB_RETURN_IF_ERROR(CheckPair(devices, selectors, choices[earlier], earlier, choice, i));
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace heapbroker

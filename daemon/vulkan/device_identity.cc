// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_identity.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/vulkan/device_choice.h"

namespace heapbroker {
namespace {

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

std::string FormatPci(const PciAddress& pci) {
  return absl::StrCat("PCI ", absl::Hex(pci.domain, absl::kZeroPad4), ":",
                      absl::Hex(pci.bus, absl::kZeroPad2), ":",
                      absl::Hex(pci.device, absl::kZeroPad2), ".", absl::Hex(pci.function));
}

}  // namespace

std::string FormatUuid(const Uuid& uuid) {
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppend(&text, absl::Hex(uuid[i], absl::kZeroPad2));
  }
  return text;
}

std::string FormatPlace(const DeviceSnapshot& device) {
  std::vector<std::string> places;
  if (device.pci) places.push_back(FormatPci(*device.pci));
  if (device.render_node) {
    places.push_back(
        absl::StrCat("device node ", device.render_node->major, ":", device.render_node->minor));
  }
  return absl::StrJoin(places, ", ");
}

std::string DescribeForPeople(absl::Span<const DeviceSnapshot> devices, size_t index) {
  const DeviceSnapshot& device = devices[index];
  const std::string place = FormatPlace(device);
  std::string text =
      absl::StrCat(index, " = '", device.name, "' (", TypeName(device.type), ", UUID ",
                   FormatUuid(device.device_uuid), ", driver UUID ", FormatUuid(device.driver_uuid),
                   place.empty() ? "" : ", ", place, ")");
  if (absl::Status usable = CheckUsable(device); !usable.ok()) {
    absl::StrAppend(&text, " which ", usable.message());
  }
  return text;
}

std::string ListForPeople(absl::Span<const DeviceSnapshot> devices) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < devices.size(); ++i) lines.push_back(DescribeForPeople(devices, i));
  return absl::StrCat("The devices are: ", absl::StrJoin(lines, "; "));
}

bool SameDevice(const DeviceSnapshot& a, const DeviceSnapshot& b) {
  return a.device_uuid == b.device_uuid && a.driver_uuid == b.driver_uuid && a.pci == b.pci &&
         a.render_node == b.render_node && a.name == b.name;
}

bool SameHardware(const DeviceSnapshot& a, const DeviceSnapshot& b) {
  if (a.pci && b.pci) return a.pci == b.pci;
  if (a.render_node && b.render_node) return a.render_node == b.render_node;
  return false;
}

}  // namespace heapbroker

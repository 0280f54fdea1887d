// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How the devices are found; what one is, is in device.cc.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/device.h"

namespace heapbroker {
namespace {

struct Machine {
  std::shared_ptr<const VulkanInstance> instance;
  std::vector<DeviceSnapshot> devices;
};

absl::StatusOr<Machine> ReadMachine() {
  HB_ASSIGN_OR_RETURN(VulkanInstance instance, VulkanInstance::Create());
  Machine machine;
  machine.instance = std::make_shared<const VulkanInstance>(std::move(instance));
  HB_ASSIGN_OR_RETURN(machine.devices, ReadDevices(*machine.instance));
  return machine;
}

}  // namespace

absl::StatusOr<OpenedDevice> OpenDevice(const DeviceSelector& selector) {
  HB_ASSIGN_OR_RETURN(const Machine machine, ReadMachine());
  HB_ASSIGN_OR_RETURN(const DeviceChoice choice, ChooseDevice(machine.devices, selector));
  HB_ASSIGN_OR_RETURN(VulkanDevice device,
                      VulkanDevice::Open(machine.instance, machine.devices[choice.index]));
  std::vector<std::string> warnings = device.warnings();
  if (!choice.warning.empty()) warnings.insert(warnings.begin(), choice.warning);
  return OpenedDevice{std::move(device), absl::StrJoin(warnings, ". ")};
}

absl::StatusOr<OpenedDevices> OpenDevices(const std::vector<std::string>& selectors,
                                          bool require_hardware) {
  HB_ASSIGN_OR_RETURN(const Machine machine, ReadMachine());
  HB_ASSIGN_OR_RETURN(const std::vector<DeviceChoice> choices,
                      ChooseDevices(machine.devices, selectors, require_hardware));
  OpenedDevices opened;
  absl::Status first_failure;
  for (const DeviceChoice& choice : choices) {
    if (!choice.warning.empty()) opened.warnings.push_back(choice.warning);
    absl::StatusOr<VulkanDevice> device =
        VulkanDevice::Open(machine.instance, machine.devices[choice.index],
                           static_cast<uint32_t>(opened.devices.size()));
    if (!device.ok()) {
      if (!selectors.empty()) return device.status();
      first_failure.Update(device.status());
      opened.warnings.push_back(
          absl::StrCat("device '", machine.devices[choice.index].name,
                       "' is left out, since it cannot be opened: ", device.status().message()));
      continue;
    }
    for (const std::string& warning : device->warnings()) opened.warnings.push_back(warning);
    opened.devices.push_back(*std::move(device));
  }
  if (opened.devices.empty()) return first_failure;
  return opened;
}

}  // namespace heapbroker

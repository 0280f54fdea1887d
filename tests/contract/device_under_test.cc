// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/device_under_test.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "daemon/core/simulated_device.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

class Simulated final : public DeviceUnderTest {
 public:
  DeviceMemory& memory() override { return device_; }
  size_t Footprint() override { return device_.counts().live; }
  bool has_bytes() const override { return false; }
  absl::StatusOr<std::unique_ptr<ImportedMemory>> Import(BlockClass, Bytes,
                                                         const ExportedHandle&) override {
    return absl::UnimplementedError("a simulated device has no bytes");
  }

 private:
  SimulatedDevice device_;
};

class Vulkan final : public DeviceUnderTest {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceUnderTest>> Open(VulkanMemoryOptions options) {
    HB_ASSIGN_OR_RETURN(OpenedDevice opened, OpenDevice(DeviceSelector{}));
    std::unique_ptr<Vulkan> vulkan(new Vulkan(std::move(opened.device)));
    HB_ASSIGN_OR_RETURN(vulkan->memory_, VulkanMemory::Create(vulkan->exporter_, options));
    HB_ASSIGN_OR_RETURN(vulkan->importer_, ImportingDevice::Open(vulkan->exporter_.info()));
    return vulkan;
  }

  DeviceMemory& memory() override { return *memory_; }

  // Each allocation has at least the descriptor that it was exported as.
  size_t Footprint() override { return OpenDescriptorCount(getpid()).value_or(0); }

  bool has_bytes() const override { return true; }

  absl::StatusOr<std::unique_ptr<ImportedMemory>> Import(BlockClass block_class,
                                                         Bytes allocation_size,
                                                         const ExportedHandle& exported) override {
    return importer_->Import(block_class, allocation_size, exported);
  }

 private:
  explicit Vulkan(VulkanDevice exporter) : exporter_(std::move(exporter)) {}

  VulkanDevice exporter_;
  std::unique_ptr<VulkanMemory> memory_;
  std::unique_ptr<ImportingDevice> importer_;
};

DeviceMaker VulkanDeviceMaker(std::string name, BlockClass block_class,
                              VulkanMemoryOptions options) {
  return {std::move(name), block_class, [options] { return Vulkan::Open(options); }};
}

struct Offer {
  HandleTypes handle_types;
  HandleTypes dedicated_only;
  bool device_addresses = false;
};

Offer OfferOfThisMachine() {
  Offer offer{.handle_types = {.opaque_fd = true}};
  if (const absl::StatusOr<OpenedDevice> opened = OpenDevice(DeviceSelector{}); opened.ok()) {
    const DeviceInfo& info = opened->device.info();
    offer = {{}, info.dedicated_only, info.device_addresses};
    for (const MemoryTypeInfo& type : info.memory_types) {
      offer.handle_types.opaque_fd |= type.exportable.opaque_fd;
      offer.handle_types.dma_buf |= type.exportable.dma_buf;
    }
  }
  if (const char* expected = std::getenv("HEAPBROKER_TEST_HANDLE_TYPES")) {
    const std::vector<std::string> names = absl::StrSplit(expected, ' ');
    const auto has = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    offer.handle_types = {.opaque_fd = has("opaque_fd"), .dma_buf = has("dma_buf")};
  }
  return offer;
}

}  // namespace

DeviceMaker SimulatedDeviceMaker() {
  return {"SimulatedDevice", {}, [] { return std::make_unique<Simulated>(); }};
}

std::vector<DeviceMaker> VulkanDeviceMakers() {
  const VulkanMemoryOptions by_mapping = {ClearMode::kAlways, ClearPath::kMapping};
  const VulkanMemoryOptions by_transfer = {ClearMode::kAlways, ClearPath::kTransfer};
  const Offer offer = OfferOfThisMachine();
  std::vector<DeviceMaker> makers;
  for (HandleType type : {HandleType::kOpaqueFd, HandleType::kDmaBuf}) {
    if (!offer.handle_types.has(type)) continue;
    const std::string name = type == HandleType::kDmaBuf ? "VulkanDmaBuf" : "Vulkan";
    BlockClass kind;
    kind.handle_type = type;
    kind.dedicated = offer.dedicated_only.has(type);
    makers.push_back(VulkanDeviceMaker(name + "AsTheDaemonOpensIt", kind, {}));
    makers.push_back(VulkanDeviceMaker(name + "ClearingByMapping", kind, by_mapping));
    makers.push_back(VulkanDeviceMaker(name + "ClearingByTransfer", kind, by_transfer));
    BlockClass dedicated = kind;
    dedicated.dedicated = true;
    makers.push_back(VulkanDeviceMaker(name + "Dedicated", dedicated, by_transfer));
    if (!offer.device_addresses) continue;
    BlockClass with_address = kind;
    with_address.device_address = true;
    makers.push_back(VulkanDeviceMaker(name + "WithDeviceAddresses", with_address, by_transfer));
  }
  return makers;
}

}  // namespace heapbroker

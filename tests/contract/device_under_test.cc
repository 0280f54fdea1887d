// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/device_under_test.h"

#include <unistd.h>

#include <utility>

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

}  // namespace

DeviceMaker SimulatedDeviceMaker() {
  return {"SimulatedDevice", [] { return std::make_unique<Simulated>(); }};
}

DeviceMaker VulkanDeviceMaker(std::string name, VulkanMemoryOptions options) {
  return {std::move(name), [options] { return Vulkan::Open(options); }};
}

}  // namespace heapbroker

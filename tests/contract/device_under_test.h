// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The devices that the contract suite holds to DeviceMemory's promises.
#ifndef TESTS_CONTRACT_DEVICE_UNDER_TEST_H_
#define TESTS_CONTRACT_DEVICE_UNDER_TEST_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/device_memory.h"
#include "daemon/vulkan/vulkan_memory.h"
#include "tests/contract/importing_device.h"

namespace heapbroker {

class DeviceUnderTest {
 public:
  virtual ~DeviceUnderTest() = default;

  virtual DeviceMemory& memory() = 0;
  // A count that every live allocation raises and that nothing else changes.
  virtual size_t Footprint() = 0;
  // Whether allocations have descriptors, and bytes behind them.
  virtual bool has_bytes() const = 0;
  // As another process would.
  //   UNIMPLEMENTED  has_bytes() is false
  virtual absl::StatusOr<std::unique_ptr<ImportedMemory>> Import(
      BlockClass block_class, Bytes allocation_size, const ExportedHandle& exported) = 0;
};

// How a parameter of the suite is called and made.
struct DeviceMaker {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<DeviceUnderTest>>()> make;

  // CTest takes it into the names of the tests.
  friend std::ostream& operator<<(std::ostream& out, const DeviceMaker& maker) {
    return out << maker.name;
  }
};

DeviceMaker SimulatedDeviceMaker();
// The best device of this machine.
DeviceMaker VulkanDeviceMaker(std::string name, VulkanMemoryOptions options);

}  // namespace heapbroker
#endif  // TESTS_CONTRACT_DEVICE_UNDER_TEST_H_

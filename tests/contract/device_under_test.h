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
#include <vector>

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

// How a parameter of the suite is called and made, and of which kind the blocks are
// that the suite makes there.
struct DeviceMaker {
  std::string name;
  BlockClass block_class;  // Without a memory type.
  std::function<absl::StatusOr<std::unique_ptr<DeviceUnderTest>>()> make;

  // CTest takes it into the names of the tests.
  friend std::ostream& operator<<(std::ostream& out, const DeviceMaker& maker) {
    return out << maker.name;
  }
};

DeviceMaker SimulatedDeviceMaker();

// The best device of this machine, once for each way of clearing and each kind of
// block that it offers. HEAPBROKER_TEST_HANDLE_TYPES, a list with spaces of
// opaque_fd and dma_buf, says instead which handle types there have to be.
std::vector<DeviceMaker> VulkanDeviceMakers();

}  // namespace heapbroker
#endif  // TESTS_CONTRACT_DEVICE_UNDER_TEST_H_

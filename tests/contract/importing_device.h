// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The other side of an exported allocation: a second Vulkan device, as a client
// has one.
#ifndef TESTS_CONTRACT_IMPORTING_DEVICE_H_
#define TESTS_CONTRACT_IMPORTING_DEVICE_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/device_memory.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/external_buffer.h"

namespace heapbroker {

// An imported allocation, mapped. Ends its import when it goes.
class ImportedMemory {
 public:
  ~ImportedMemory();
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;

  // The whole allocation, padding included.
  absl::Span<uint8_t> bytes() const { return bytes_; }

  // Binds an external buffer of `size` bytes at the beginning, as an importer
  // would to compute on it.
  //   FAILED_PRECONDITION  it needs more than the allocation has, or another type
  absl::Status TryBuffer(Bytes size) const;

  // The device's address of such a buffer, which is gone when this returns.
  //   FAILED_PRECONDITION  as TryBuffer, or the block was not made for it
  absl::StatusOr<VkDeviceAddress> AddressOfBuffer(Bytes size) const;

 private:
  friend class ImportingDevice;
  ImportedMemory(const VulkanDevice& device, BlockClass block_class,
                 std::optional<ExternalBuffer> dedicated_buffer)
      : device_(device),
        block_class_(block_class),
        dedicated_buffer_(std::move(dedicated_buffer)) {}

  absl::StatusOr<VkBuffer> Bind(Bytes size, std::optional<ExternalBuffer>& buffer) const;

  const VulkanDevice& device_;
  const BlockClass block_class_;
  // Bound from the beginning; no other may be.
  std::optional<ExternalBuffer> dedicated_buffer_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  absl::Span<uint8_t> bytes_;
};

class ImportingDevice {
 public:
  // The same physical device as `exporter`'s, opened once more.
  static absl::StatusOr<std::unique_ptr<ImportingDevice>> Open(const DeviceInfo& exporter);

  // With exactly the exporter's facts; of a dma-buf the memory type and the size are
  // the importer's to find out, and must agree with them. `exported` keeps its descriptor. The
  // memory type must be host-visible and coherent.
  absl::StatusOr<std::unique_ptr<ImportedMemory>> Import(BlockClass block_class,
                                                         Bytes allocation_size,
                                                         const ExportedHandle& exported);

 private:
  explicit ImportingDevice(VulkanDevice device) : device_(std::move(device)) {}

  absl::Status CheckDmaBuf(const BlockClass& block_class, Bytes allocation_size, int fd) const;

  VulkanDevice device_;
};

}  // namespace heapbroker
#endif  // TESTS_CONTRACT_IMPORTING_DEVICE_H_

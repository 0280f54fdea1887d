// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/importing_device.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"
#include "daemon/vulkan/exportable_memory.h"
#include "daemon/vulkan/handle_type.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {

absl::StatusOr<std::unique_ptr<ImportingDevice>> ImportingDevice::Open(const DeviceInfo& exporter) {
  DeviceSelector selector;
  for (uint8_t byte : exporter.device_uuid) {
    absl::StrAppend(&selector.text, absl::Hex(byte, absl::kZeroPad2));
  }
  HB_ASSIGN_OR_RETURN(OpenedDevice opened, OpenDevice(selector));
  if (opened.device.info().driver_uuid != exporter.driver_uuid) {
    return absl::FailedPreconditionError("the device has another driver than the exporter's");
  }
  return std::unique_ptr<ImportingDevice>(new ImportingDevice(std::move(opened.device)));
}

absl::Status ImportingDevice::CheckDmaBuf(const BlockClass& block_class, Bytes allocation_size,
                                          int fd) const {
  const auto get_properties = reinterpret_cast<PFN_vkGetMemoryFdPropertiesKHR>(
      vkGetDeviceProcAddr(device_.handle(), "vkGetMemoryFdPropertiesKHR"));
  VkMemoryFdPropertiesKHR properties{};
  properties.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR;
  HB_RETURN_IF_ERROR(ResultToStatus(
      get_properties(device_.handle(), ToVulkan(HandleType::kDmaBuf), fd, &properties),
      "vkGetMemoryFdPropertiesKHR"));
  const off_t size = lseek(fd, 0, SEEK_END);
  if ((properties.memoryTypeBits >> block_class.memory_type & 1) == 0 || size < 0 ||
      static_cast<uint64_t>(size) < allocation_size.count()) {
    return absl::FailedPreconditionError(absl::StrCat("the dma-buf has ", size,
                                                      " bytes and can be of the memory types ",
                                                      absl::Hex(properties.memoryTypeBits)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ImportedMemory>> ImportingDevice::Import(
    BlockClass block_class, Bytes allocation_size, const ExportedHandle& exported) {
  if (block_class.handle_type == HandleType::kDmaBuf) {
    HB_RETURN_IF_ERROR(CheckDmaBuf(block_class, allocation_size, exported.fd()));
  }
  std::optional<ExternalBuffer> buffer;
  if (block_class.dedicated) {
    HB_ASSIGN_OR_RETURN(buffer, ExternalBuffer::CreateCovering(
                                    device_.handle(), BufferKindOf(block_class), allocation_size));
  }
  HB_ASSIGN_OR_RETURN(UniqueFd fd, DuplicateFd(exported.fd()));
  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = ToVulkan(block_class.handle_type);
  // A driver may or may not close it when the import fails; closing it here too
  // might close somebody else's, so a failing import leaks one at worst.
  import.fd = fd.Release();
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &import;
  allocate.allocationSize = allocation_size.count();
  allocate.memoryTypeIndex = block_class.memory_type;
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  if (buffer) {
    dedicated.buffer = buffer->handle();
    dedicated.pNext = std::exchange(allocate.pNext, &dedicated);
  }
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  if (block_class.device_address) flags.pNext = std::exchange(allocate.pNext, &flags);
  std::unique_ptr<ImportedMemory> imported(
      new ImportedMemory(device_, block_class, std::move(buffer)));
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkAllocateMemory(device_.handle(), &allocate, nullptr, &imported->memory_),
                     "vkAllocateMemory of an import"));
  if (imported->dedicated_buffer_) {
    HB_RETURN_IF_ERROR(
        ResultToStatus(vkBindBufferMemory(device_.handle(), imported->dedicated_buffer_->handle(),
                                          imported->memory_, 0),
                       "vkBindBufferMemory"));
  }
  void* mapping = nullptr;
  HB_RETURN_IF_ERROR(ResultToStatus(
      vkMapMemory(device_.handle(), imported->memory_, 0, VK_WHOLE_SIZE, 0, &mapping),
      "vkMapMemory"));
  imported->bytes_ = absl::MakeSpan(static_cast<uint8_t*>(mapping), allocation_size.count());
  return imported;
}

// Freeing ends the mapping too.
ImportedMemory::~ImportedMemory() {
  dedicated_buffer_.reset();
  vkFreeMemory(device_.handle(), memory_, nullptr);
}

// Into `buffer`, unless the memory has its own.
absl::StatusOr<VkBuffer> ImportedMemory::Bind(Bytes size,
                                              std::optional<ExternalBuffer>& buffer) const {
  if (dedicated_buffer_) {
    if (dedicated_buffer_->size() >= size) return dedicated_buffer_->handle();
    return absl::FailedPreconditionError(
        absl::StrCat("the block's own buffer has ", dedicated_buffer_->size().count(), " bytes"));
  }
  HB_ASSIGN_OR_RETURN(buffer,
                      ExternalBuffer::Create(device_.handle(), BufferKindOf(block_class_), size));
  const VkMemoryRequirements& needed = buffer->requirements();
  if (needed.size > bytes_.size() || (needed.memoryTypeBits >> block_class_.memory_type & 1) == 0) {
    return absl::FailedPreconditionError(absl::StrCat("a buffer of ", size.count(), " bytes needs ",
                                                      needed.size, " bytes of the memory types ",
                                                      absl::Hex(needed.memoryTypeBits)));
  }
  HB_RETURN_IF_ERROR(ResultToStatus(
      vkBindBufferMemory(device_.handle(), buffer->handle(), memory_, 0), "vkBindBufferMemory"));
  return buffer->handle();
}

absl::Status ImportedMemory::TryBuffer(Bytes size) const {
  std::optional<ExternalBuffer> buffer;
  return Bind(size, buffer).status();
}

absl::StatusOr<VkDeviceAddress> ImportedMemory::AddressOfBuffer(Bytes size) const {
  if (!block_class_.device_address) {
    return absl::FailedPreconditionError("the block was not made for device addresses");
  }
  std::optional<ExternalBuffer> buffer;
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  HB_ASSIGN_OR_RETURN(info.buffer, Bind(size, buffer));
  return vkGetBufferDeviceAddress(device_.handle(), &info);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/importing_device.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"
#include "daemon/vulkan/external_buffer.h"
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

absl::StatusOr<std::unique_ptr<ImportedMemory>> ImportingDevice::Import(
    BlockClass block_class, Bytes allocation_size, const ExportedHandle& exported) {
  HB_ASSIGN_OR_RETURN(UniqueFd fd, DuplicateFd(exported.fd()));
  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  // A driver may or may not close it when the import fails; closing it here too
  // might close somebody else's, so a failing import leaks one at worst.
  import.fd = fd.Release();
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &import;
  allocate.allocationSize = allocation_size.count();
  allocate.memoryTypeIndex = block_class.memory_type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(ResultToStatus(vkAllocateMemory(device_.handle(), &allocate, nullptr, &memory),
                                    "vkAllocateMemory of an import"));
  std::unique_ptr<ImportedMemory> imported(
      new ImportedMemory(device_, memory, block_class.memory_type));
  void* mapping = nullptr;
  HB_RETURN_IF_ERROR(ResultToStatus(
      vkMapMemory(device_.handle(), memory, 0, VK_WHOLE_SIZE, 0, &mapping), "vkMapMemory"));
  imported->bytes_ = absl::MakeSpan(static_cast<uint8_t*>(mapping), allocation_size.count());
  return imported;
}

// Freeing ends the mapping too.
ImportedMemory::~ImportedMemory() { vkFreeMemory(device_.handle(), memory_, nullptr); }

absl::Status ImportedMemory::TryBuffer(Bytes size) const {
  HB_ASSIGN_OR_RETURN(const ExternalBuffer buffer, ExternalBuffer::Create(device_.handle(), size));
  const VkMemoryRequirements& needed = buffer.requirements();
  if (needed.size > bytes_.size() || (needed.memoryTypeBits >> memory_type_ & 1) == 0) {
    return absl::FailedPreconditionError(absl::StrCat("a buffer of ", size.count(), " bytes needs ",
                                                      needed.size, " bytes of the memory types ",
                                                      absl::Hex(needed.memoryTypeBits)));
  }
  return ResultToStatus(vkBindBufferMemory(device_.handle(), buffer.handle(), memory_, 0),
                        "vkBindBufferMemory");
}

}  // namespace heapbroker

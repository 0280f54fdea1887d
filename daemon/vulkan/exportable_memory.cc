// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/exportable_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/device_description.h"
#include "daemon/vulkan/driver_error.h"
#include "daemon/vulkan/handle_type.h"

namespace heapbroker {
namespace {

constexpr Bytes kTrialSize = KiB(64);

// Whether the descriptor is what the handle type says. Of opaque descriptors only
// the driver knows; a dma-buf tells its size to everybody.
absl::Status CheckExported(const UniqueFd& fd, HandleType type, Bytes size) {
  if (type == HandleType::kOpaqueFd) return absl::OkStatus();
  const off_t end = lseek(fd.get(), 0, SEEK_END);
  if (end >= 0 && static_cast<uint64_t>(end) >= size.count()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the driver exported ", size.count(), " bytes as a descriptor that ",
                   end < 0 ? absl::StrCat("has no size (", std::strerror(errno), ")")
                           : absl::StrCat("has ", end),
                   ", which is no dma-buf of it"));
}

absl::Status Try(const VulkanDevice& device, const BlockClass& block_class) {
  HB_ASSIGN_OR_RETURN(
      const ExternalBuffer buffer,
      ExternalBuffer::Create(device.handle(), BufferKindOf(block_class), kTrialSize));
  HB_ASSIGN_OR_RETURN(
      const ExportableMemory memory,
      ExportableMemory::Allocate(device, block_class, Bytes(buffer.requirements().size)));
  HB_ASSIGN_OR_RETURN(const UniqueFd fd, memory.Export());
  return CheckExported(fd, block_class.handle_type, memory.size());
}

std::vector<HandleTrial> TryAll(const VulkanDevice& device,
                                const std::vector<BlockClass>& classes) {
  std::vector<HandleTrial> trials;
  for (const BlockClass& block_class : classes) {
    trials.push_back({block_class, Try(device, block_class)});
  }
  return trials;
}

}  // namespace

absl::StatusOr<ExportableMemory> ExportableMemory::Allocate(const VulkanDevice& device,
                                                            const BlockClass& block_class,
                                                            Bytes size) {
  ExportableMemory memory(device, block_class, size);
  if (block_class.dedicated) {
    HB_ASSIGN_OR_RETURN(
        ExternalBuffer buffer,
        ExternalBuffer::CreateCovering(device.handle(), BufferKindOf(block_class), size));
    if (buffer.requirements().size != size.count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no buffer needs exactly ", size.count(),
          " bytes, as dedicated memory must have; the nearest needs ", buffer.requirements().size));
    }
    memory.dedicated_buffer_ = std::move(buffer);
  }
  HB_RETURN_IF_ERROR(memory.AllocateMemory());
  if (memory.dedicated_buffer_) {
    HB_RETURN_IF_ERROR(DriverStatus(
        vkBindBufferMemory(device.handle(), memory.dedicated_buffer_->handle(), memory.handle_,
                           /*memoryOffset=*/0),
        "vkBindBufferMemory"));
  }
  return memory;
}

absl::Status ExportableMemory::AllocateMemory() {
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = ToVulkan(block_class_.handle_type);
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &exported;
  allocate.allocationSize = size_.count();
  allocate.memoryTypeIndex = block_class_.memory_type;
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  if (dedicated_buffer_) {
    dedicated.buffer = dedicated_buffer_->handle();
    dedicated.pNext = std::exchange(allocate.pNext, &dedicated);
  }
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  if (block_class_.device_address) flags.pNext = std::exchange(allocate.pNext, &flags);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(DriverStatus(vkAllocateMemory(device_->handle(), &allocate, nullptr, &memory),
                                  "vkAllocateMemory"));
  handle_ = memory;
  return absl::OkStatus();
}

ExportableMemory::ExportableMemory(ExportableMemory&& other) noexcept
    : device_(other.device_),
      block_class_(other.block_class_),
      size_(other.size_),
      handle_(std::exchange(other.handle_, VK_NULL_HANDLE)),
      dedicated_buffer_(std::move(other.dedicated_buffer_)) {}

ExportableMemory& ExportableMemory::operator=(ExportableMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(block_class_, other.block_class_);
  std::swap(size_, other.size_);
  std::swap(handle_, other.handle_);
  std::swap(dedicated_buffer_, other.dedicated_buffer_);
  return *this;
}

ExportableMemory::~ExportableMemory() {
  dedicated_buffer_.reset();
  if (handle_ != VK_NULL_HANDLE) vkFreeMemory(device_->handle(), handle_, nullptr);
}

absl::StatusOr<UniqueFd> ExportableMemory::Export() const {
  VkMemoryGetFdInfoKHR get{};
  get.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  get.memory = handle_;
  get.handleType = ToVulkan(block_class_.handle_type);
  int fd = -1;
  HB_RETURN_IF_ERROR(
      DriverStatus(device_->get_memory_fd()(device_->handle(), &get, &fd), "vkGetMemoryFdKHR"));
  // What lavapipe does at the descriptor limit: it fails to duplicate its own and
  // says nothing about it.
  if (fd < 0) {
    return ExplainMissingDescriptor("vkGetMemoryFdKHR", ReadProcessLimits());
  }
  UniqueFd exported(fd);
  // Drivers give the descriptor without it.
  if (fcntl(exported.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return absl::InternalError(
        absl::StrCat("the driver exported descriptor ", exported.get(),
                     ", on which close-on-exec cannot be set: ", std::strerror(errno)));
  }
  return exported;
}

std::vector<std::string> TryExports(const VulkanDevice& device, DeviceInfo& info) {
  std::vector<std::string> warnings = DropWhatFailed(TryAll(device, ClassesToTry(info)), info);
  for (std::string& warning : DropWhatFailed(TryAll(device, AddressClassesToTry(info)), info)) {
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace heapbroker

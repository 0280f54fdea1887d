// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/external_buffer.h"

#include <utility>

#include "common/base/largest_fitting.h"
#include "common/base/status_macros.h"
#include "daemon/vulkan/handle_type.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {

absl::StatusOr<ExternalBuffer> ExternalBuffer::Create(VkDevice device, ExternalBufferKind kind,
                                                      Bytes size) {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = ToVulkan(kind.handle_type);
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.pNext = &external;
  create.size = size.count();
  create.usage = kExternalBufferUsage;
  if (kind.device_address) create.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  create.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  VkBuffer handle = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkCreateBuffer(device, &create, nullptr, &handle), "vkCreateBuffer"));
  return ExternalBuffer(device, handle, size);
}

absl::StatusOr<ExternalBuffer> ExternalBuffer::CreateCovering(VkDevice device,
                                                              ExternalBufferKind kind,
                                                              Bytes allocation_size) {
  const auto required = [&](Bytes size) -> absl::StatusOr<Bytes> {
    HB_ASSIGN_OR_RETURN(const ExternalBuffer buffer, Create(device, kind, size));
    return Bytes(buffer.requirements().size);
  };
  HB_ASSIGN_OR_RETURN(const Bytes largest, LargestFitting(allocation_size, required));
  return Create(device, kind, largest);
}

ExternalBuffer::ExternalBuffer(VkDevice device, VkBuffer handle, Bytes size)
    : device_(device), handle_(handle), size_(size) {
  vkGetBufferMemoryRequirements(device_, handle_, &requirements_);
}

ExternalBuffer::ExternalBuffer(ExternalBuffer&& other) noexcept
    : device_(other.device_),
      handle_(std::exchange(other.handle_, VK_NULL_HANDLE)),
      size_(other.size_),
      requirements_(other.requirements_) {}

ExternalBuffer& ExternalBuffer::operator=(ExternalBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(size_, other.size_);
  std::swap(requirements_, other.requirements_);
  return *this;
}

ExternalBuffer::~ExternalBuffer() {
  if (handle_ != VK_NULL_HANDLE) vkDestroyBuffer(device_, handle_, nullptr);
}

}  // namespace heapbroker

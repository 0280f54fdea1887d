// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/import_buffer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/import_checks.h"
#include "client/src/vulkan_result.h"
#include "common/base/largest_fitting.h"
#include "common/base/status_macros.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

VkExternalMemoryHandleTypeFlagBits ToVulkan(HandleType type) {
  return type == HandleType::kDmaBuf ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
                                     : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

absl::StatusOr<ImportBuffer> ImportBuffer::Create(VkDevice device, HandleType type, Bytes size,
                                                  VkBufferUsageFlags usage) {
  const VkExternalMemoryBufferCreateInfo external{
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = ToVulkan(type)};
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .pNext = &external,
                                .size = size.count(),
                                .usage = usage,
                                .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
  VkBuffer buffer = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer"));
  return ImportBuffer(device, buffer);
}

absl::StatusOr<ImportBuffer> ImportBuffer::CreateDedicated(VkDevice device,
                                                           const ImportFacts& facts) {
  const VkBufferUsageFlags usage = DedicatedUsage(facts);
  const auto required = [&](Bytes size) -> absl::StatusOr<Bytes> {
    HB_ASSIGN_OR_RETURN(const ImportBuffer buffer, Create(device, facts.handle_type, size, usage));
    return Bytes(buffer.requirements().size);
  };
  HB_ASSIGN_OR_RETURN(const Bytes largest, LargestFitting(facts.allocation_size, required));
  HB_ASSIGN_OR_RETURN(ImportBuffer buffer, Create(device, facts.handle_type, largest, usage));
  if (buffer.requirements().size != facts.allocation_size.count()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "block ", facts.block_id, " has ", facts.allocation_size.count(),
        " bytes for one buffer, and here no buffer needs exactly that many (the nearest needs ",
        buffer.requirements().size, "); it is not the broker's device and driver"));
  }
  return buffer;
}

std::optional<uint64_t> ImportBuffer::DeviceAddress() const {
  // The first is Vulkan 1.2's name; a device of 1.1 has the extension's.
  PFN_vkVoidFunction found = vkGetDeviceProcAddr(device_, "vkGetBufferDeviceAddress");
  if (found == nullptr) found = vkGetDeviceProcAddr(device_, "vkGetBufferDeviceAddressKHR");
  if (found == nullptr) return std::nullopt;
  const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                       .buffer = handle_};
  return reinterpret_cast<PFN_vkGetBufferDeviceAddress>(found)(device_, &info);
}

ImportBuffer::ImportBuffer(VkDevice device, VkBuffer handle) : device_(device), handle_(handle) {
  vkGetBufferMemoryRequirements(device_, handle_, &requirements_);
}

ImportBuffer::ImportBuffer(ImportBuffer&& other) noexcept
    : process_(other.process_),
      device_(other.device_),
      handle_(std::exchange(other.handle_, VK_NULL_HANDLE)),
      requirements_(other.requirements_) {}

ImportBuffer& ImportBuffer::operator=(ImportBuffer&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(requirements_, other.requirements_);
  return *this;
}

ImportBuffer::~ImportBuffer() {
  if (handle_ != VK_NULL_HANDLE && !process_.forked()) vkDestroyBuffer(device_, handle_, nullptr);
}

}  // namespace heapbroker

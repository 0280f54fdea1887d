// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/src/imported_memory.h"
#include "client/src/ranges.h"
#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

// The range widened to what the device can flush, as Vulkan demands.
VkMappedMemoryRange FlushableRange(VkDeviceMemory memory, Bytes offset, Bytes size, Bytes atom,
                                   Bytes allocation_size) {
  const Bytes begin(offset.count() - offset.count() % atom.count());
  const std::optional<Bytes> end = AlignUp(offset + size, atom);
  const bool to_the_end = !end || *end >= allocation_size;
  return {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
          .memory = memory,
          .offset = begin.count(),
          .size = to_the_end ? VK_WHOLE_SIZE : (*end - begin).count()};
}

VkBufferMemoryBarrier WholeBuffer(VkBuffer buffer) {
  return {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
          .buffer = buffer,
          .offset = 0,
          .size = VK_WHOLE_SIZE};
}

}  // namespace

VkBuffer DeviceBuffer::handle() const {
  return valid() ? state_->buffer().handle() : VK_NULL_HANDLE;
}

VkDeviceMemory DeviceBuffer::memory() const {
  return valid() ? state_->memory->handle() : VK_NULL_HANDLE;
}

Bytes DeviceBuffer::size() const { return facts().size; }

const ImportFacts& DeviceBuffer::facts() const {
  static constexpr ImportFacts kNothing;
  return valid() ? state_->facts : kNothing;
}

void* DeviceBuffer::mapped() const { return valid() ? state_->memory->mapped() : nullptr; }

std::optional<uint64_t> DeviceBuffer::device_address() const {
  return valid() ? state_->device_address : std::nullopt;
}

absl::StatusOr<std::optional<VkMappedMemoryRange>> DeviceBuffer::SyncRange(Bytes offset,
                                                                           Bytes size) const {
  HB_RETURN_IF_ERROR(CheckRange("DeviceBuffer", offset, size, this->size()));
  if (mapped() == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("block ", facts().block_id, " is not host-visible; copy through one that is"));
  }
  const bool coherent = (facts().memory_property_flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
  if (coherent || size == Bytes(0)) return std::nullopt;
  return FlushableRange(memory(), offset, size, state_->non_coherent_atom, facts().allocation_size);
}

absl::Status DeviceBuffer::Flush(Bytes offset, Bytes size) const {
  HB_ASSIGN_OR_RETURN(const std::optional<VkMappedMemoryRange> range, SyncRange(offset, size));
  if (!range) return absl::OkStatus();
  return VulkanStatus(vkFlushMappedMemoryRanges(state_->context.device, 1, &*range),
                      "vkFlushMappedMemoryRanges");
}

absl::Status DeviceBuffer::Invalidate(Bytes offset, Bytes size) const {
  HB_ASSIGN_OR_RETURN(const std::optional<VkMappedMemoryRange> range, SyncRange(offset, size));
  if (!range) return absl::OkStatus();
  return VulkanStatus(vkInvalidateMappedMemoryRanges(state_->context.device, 1, &*range),
                      "vkInvalidateMappedMemoryRanges");
}

void DeviceBuffer::RecordAcquire(VkCommandBuffer commands,
                                 std::optional<uint32_t> queue_family) const {
  if (!valid()) return;
  VkBufferMemoryBarrier barrier = WholeBuffer(handle());
  barrier.srcAccessMask = 0;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.srcQueueFamilyIndex = state_->others_queue_family();
  barrier.dstQueueFamilyIndex = queue_family.value_or(state_->context.queue_family);
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 1, &barrier, 0, nullptr);
  if (mapped() == nullptr) return;
  // A transfer of ownership cannot name the host's stage, so the host's turn
  // comes after it.
  const VkMemoryBarrier to_host{
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                       1, &to_host, 0, nullptr, 0, nullptr);
}

void DeviceBuffer::RecordRelease(VkCommandBuffer commands,
                                 std::optional<uint32_t> queue_family) const {
  if (!valid()) return;
  // What the host wrote before the submission is visible to it by itself.
  VkBufferMemoryBarrier barrier = WholeBuffer(handle());
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = 0;
  barrier.srcQueueFamilyIndex = queue_family.value_or(state_->context.queue_family);
  barrier.dstQueueFamilyIndex = state_->others_queue_family();
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr, 1, &barrier, 0,
                       nullptr);
}

}  // namespace heapbroker

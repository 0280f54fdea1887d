// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/hand_over.h"

namespace heapbroker {
namespace {

constexpr VkAccessFlags kAnyAccess = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
constexpr VkAccessFlags kCopyAccess = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

void RecordMemoryBarrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags written,
                         VkPipelineStageFlags to, VkAccessFlags wanted) {
  const VkMemoryBarrier barrier{
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = written, .dstAccessMask = wanted};
  vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void RecordBufferBarrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                         VkPipelineStageFlags to, const VkBufferMemoryBarrier& barrier) {
  vkCmdPipelineBarrier(commands, from, to, 0, 0, nullptr, 1, &barrier, 0, nullptr);
}

}  // namespace

VkBufferMemoryBarrier HandOver::Barrier(uint32_t from, uint32_t to) const {
  return {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
          .srcQueueFamilyIndex = from,
          .dstQueueFamilyIndex = to,
          .buffer = buffer_.handle(),
          .offset = offset_.count(),
          .size = size_.count()};
}

absl::Status HandOver::Before() {
  if (!changes_family()) return absl::OkStatus();
  return importer_.SubmitAndWait([&](VkCommandBuffer commands) {
    VkBufferMemoryBarrier release = Barrier(owners_family(), queue_.family);
    release.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    RecordBufferBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                        VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, release);
  });
}

void HandOver::RecordTake(VkCommandBuffer commands) const {
  if (owner_ == Owner::kExternal) {
    buffer_.RecordAcquire(commands, queue_.family);
  } else if (changes_family()) {
    VkBufferMemoryBarrier acquire = Barrier(owners_family(), queue_.family);
    acquire.dstAccessMask = kCopyAccess;
    RecordBufferBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                        acquire);
  } else {
    RecordMemoryBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT,
                        VK_PIPELINE_STAGE_TRANSFER_BIT, kCopyAccess);
  }
}

void HandOver::RecordGive(VkCommandBuffer commands) const {
  if (owner_ == Owner::kExternal) {
    buffer_.RecordRelease(commands, queue_.family);
  } else if (changes_family()) {
    VkBufferMemoryBarrier release = Barrier(queue_.family, owners_family());
    release.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    RecordBufferBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                        VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, release);
  } else {
    RecordMemoryBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                        kAnyAccess | VK_ACCESS_HOST_READ_BIT);
  }
}

absl::Status HandOver::After() {
  if (!changes_family()) return absl::OkStatus();
  return importer_.SubmitAndWait([&](VkCommandBuffer commands) {
    VkBufferMemoryBarrier acquire = Barrier(queue_.family, owners_family());
    acquire.dstAccessMask = kAnyAccess;
    RecordBufferBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, acquire);
  });
}

}  // namespace heapbroker

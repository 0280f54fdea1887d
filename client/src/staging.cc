// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/staging.h"

#include <algorithm>
#include <cstring>

#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

void RecordBarrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                   VkAccessFlags written, VkAccessFlags wanted) {
  const VkMemoryBarrier barrier{
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = written, .dstAccessMask = wanted};
  vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// A copy that sees all earlier work on the device, and that all later work and
// the host see.
void RecordCopy(VkCommandBuffer commands, VkBuffer source, VkBuffer target,
                const VkBufferCopy& region) {
  RecordBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_ACCESS_MEMORY_WRITE_BIT,
                VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  vkCmdCopyBuffer(commands, source, target, 1, &region);
  RecordBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                VK_ACCESS_TRANSFER_WRITE_BIT,
                VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
}

}  // namespace

Staging::Staging(const Client& client, VulkanImporter& importer, Bytes piece)
    : client_(client), importer_(importer), piece_(piece) {}

Staging::~Staging() { End().IgnoreError(); }

absl::Status Staging::Begin() {
  if (lease_.held()) return absl::OkStatus();
  // Cached, because reading memory that is not is slower by orders of magnitude.
  HB_ASSIGN_OR_RETURN(Lease lease,
                      client_.Allocate({.size = piece_, .memory = MemoryKind::kHostCached}));
  HB_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                      importer_.Import(*lease.block(), VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                           VK_BUFFER_USAGE_TRANSFER_DST_BIT));
  HB_RETURN_IF_ERROR(importer_.AcquireAll({buffer}));
  lease_ = std::move(lease);
  buffer_ = std::move(buffer);
  return absl::OkStatus();
}

absl::Status Staging::End() {
  if (!lease_.held()) return absl::OkStatus();
  absl::Status first = importer_.ReleaseAll({buffer_});
  buffer_ = DeviceBuffer();
  first.Update(lease_.Release());
  return first;
}

absl::Status Staging::Upload(const DeviceBuffer& target, Bytes offset, const void* data,
                             Bytes size) {
  HB_RETURN_IF_ERROR(Begin());
  const char* next = static_cast<const char*>(data);
  while (size > Bytes(0)) {
    const Bytes part = std::min(size, piece_);
    std::memcpy(buffer_.mapped(), next, part.count());
    HB_RETURN_IF_ERROR(buffer_.Flush(Bytes(0), part));
    HB_RETURN_IF_ERROR(importer_.SubmitAndWait([&](VkCommandBuffer commands) {
      RecordCopy(commands, buffer_.handle(), target.handle(),
                 {.srcOffset = 0, .dstOffset = offset.count(), .size = part.count()});
    }));
    next += part.count();
    offset += part;
    size -= part;
  }
  return absl::OkStatus();
}

absl::Status Staging::Download(const DeviceBuffer& source, Bytes offset, Bytes size,
                               absl::FunctionRef<void(const void* data, Bytes size)> consume) {
  HB_RETURN_IF_ERROR(Begin());
  while (size > Bytes(0)) {
    const Bytes part = std::min(size, piece_);
    HB_RETURN_IF_ERROR(importer_.SubmitAndWait([&](VkCommandBuffer commands) {
      RecordCopy(commands, source.handle(), buffer_.handle(),
                 {.srcOffset = offset.count(), .dstOffset = 0, .size = part.count()});
    }));
    HB_RETURN_IF_ERROR(buffer_.Invalidate(Bytes(0), part));
    consume(buffer_.mapped(), part);
    offset += part;
    size -= part;
  }
  return absl::OkStatus();
}

}  // namespace heapbroker

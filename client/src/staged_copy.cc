// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/staged_copy.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

void RecordForHost(VkCommandBuffer commands) {
  const VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                       &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace

absl::Status StagedCopy::Upload(ProducePiece produce) {
  return WithRange([&] { return UploadPieces(produce); });
}

absl::Status StagedCopy::Download(ConsumePiece consume) {
  return WithRange([&] { return DownloadPieces(consume); });
}

absl::Status StagedCopy::WithRange(absl::FunctionRef<absl::Status()> copy) {
  HB_RETURN_IF_ERROR(hand_over_.Before());
  absl::Status status = copy();
  status.Update(ring_.Wait());
  if (!given_) {
    // It must be given as it was taken, even if nothing was copied in between.
    CopyCommands& commands = *ring_.at(0).commands;
    status.Update(commands.Submit([&](VkCommandBuffer recorded) {
      if (!taken_) hand_over_.RecordTake(recorded);
      hand_over_.RecordGive(recorded);
    }));
    status.Update(commands.Wait());
  }
  status.Update(hand_over_.After());
  return status;
}

absl::Status StagedCopy::Submit(uint64_t piece, Direction direction) {
  StagingSlot& slot = ring_.at(piece);
  const bool last = piece + 1 == course_.pieces();
  const VkDeviceSize place = (offset_ + course_.StartOf(piece)).count();
  const Bytes size = course_.SizeOf(piece);
  HB_RETURN_IF_ERROR(slot.commands->Submit([&](VkCommandBuffer commands) {
    if (!taken_) hand_over_.RecordTake(commands);
    if (direction == Direction::kToDevice) {
      const VkBufferCopy region{.srcOffset = 0, .dstOffset = place, .size = size.count()};
      vkCmdCopyBuffer(commands, slot.buffer.handle(), buffer_.handle(), 1, &region);
    } else {
      const VkBufferCopy region{.srcOffset = place, .dstOffset = 0, .size = size.count()};
      vkCmdCopyBuffer(commands, buffer_.handle(), slot.buffer.handle(), 1, &region);
      RecordForHost(commands);
    }
    if (last) hand_over_.RecordGive(commands);
  }));
  taken_ = true;
  given_ = last;
  return absl::OkStatus();
}

absl::Status StagedCopy::UploadPieces(ProducePiece produce) {
  const uint64_t pieces = course_.pieces();
  // Each time round a slot's last piece has to arrive first; after the last time all that
  // are left do.
  for (uint64_t step = 0; step < pieces + ring_.size(); ++step) {
    if (step >= ring_.size() && step - ring_.size() < pieces) {
      const uint64_t arriving = step - ring_.size();
      HB_RETURN_IF_ERROR(ring_.at(arriving).commands->Wait());
      course_.Advance(course_.SizeOf(arriving));
    }
    if (step >= pieces) continue;
    HB_RETURN_IF_ERROR(course_.CheckMayGoOn());
    const StagingSlot& slot = ring_.at(step);
    const Bytes size = course_.SizeOf(step);
    HB_RETURN_IF_ERROR(produce(slot.host(), size));
    HB_RETURN_IF_ERROR(slot.buffer.Flush(Bytes(0), size));
    HB_RETURN_IF_ERROR(Submit(step, Direction::kToDevice));
  }
  return absl::OkStatus();
}

absl::Status StagedCopy::DownloadPieces(ConsumePiece consume) {
  const uint64_t pieces = course_.pieces();
  uint64_t submitted = 0;
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    for (; submitted < std::min<uint64_t>(pieces, piece + ring_.size()); ++submitted) {
      HB_RETURN_IF_ERROR(course_.CheckMayGoOn());
      HB_RETURN_IF_ERROR(Submit(submitted, Direction::kToHost));
    }
    const StagingSlot& slot = ring_.at(piece);
    const Bytes size = course_.SizeOf(piece);
    HB_RETURN_IF_ERROR(slot.commands->Wait());
    HB_RETURN_IF_ERROR(slot.buffer.Invalidate(Bytes(0), size));
    HB_RETURN_IF_ERROR(consume(slot.host(), size));
    course_.Advance(size);
  }
  return absl::OkStatus();
}

}  // namespace heapbroker

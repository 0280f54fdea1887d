// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/held_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "heapbroker/checksum.h"

namespace heapbroker {
namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;

void RecordCopy(VkCommandBuffer commands, const DeviceBuffer& from, const DeviceBuffer& to) {
  const VkBufferCopy region{.srcOffset = 0, .dstOffset = 0, .size = from.size().count()};
  vkCmdCopyBuffer(commands, from.handle(), to.handle(), 1, &region);
  const VkMemoryBarrier to_host{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .pNext = nullptr,
                                .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                       &to_host, 0, nullptr, 0, nullptr);
}

}  // namespace

uint8_t PatternByte(uint64_t seed, uint64_t offset) {
  return static_cast<uint8_t>((offset * 0x9E3779B97F4A7C15u + seed * 0xD6E8FEB86659FD93u) >> 56);
}

std::vector<std::shared_ptr<const MemoryBlock>> HeldMemory::Blocks() const {
  if (lease_.held()) return {lease_.block()};
  return segment_.blocks();
}

Bytes HeldMemory::Size() const { return lease_.held() ? lease_.facts().size : segment_.size(); }

std::string HeldMemory::Describe() const {
  std::vector<uint64_t> ids;
  uint64_t bytes = 0;
  uint64_t allocated = 0;
  for (const auto& block : Blocks()) {
    ids.push_back(block->facts().block_id);
    bytes += block->facts().size.count();
    allocated += block->facts().allocation_size.count();
  }
  return absl::StrCat("blocks=", absl::StrJoin(ids, ","), " bytes=", bytes,
                      " allocated=", allocated, " writer=", segment_.is_writer() ? 1 : 0);
}

absl::Status HeldMemory::Import(VulkanImporter& importer) {
  if (!buffers_.empty()) return absl::OkStatus();
  std::vector<DeviceBuffer> buffers;
  for (const auto& block : Blocks()) {
    HB_ASSIGN_OR_RETURN(DeviceBuffer buffer, importer.Import(*block, kUsage));
    if (buffer.mapped() == nullptr) {
      return absl::FailedPreconditionError("the host cannot map this memory");
    }
    buffers.push_back(std::move(buffer));
  }
  HB_RETURN_IF_ERROR(importer.AcquireAll(buffers));
  buffers_ = std::move(buffers);
  return absl::OkStatus();
}

absl::Status HeldMemory::ForEachPart(
    Bytes offset, Bytes size,
    absl::FunctionRef<absl::Status(uint8_t*, uint64_t, uint64_t)> visit) const {
  if (buffers_.empty()) return absl::FailedPreconditionError("not imported");
  if (offset > Size() || size > Size() - offset) {
    return absl::OutOfRangeError(absl::StrCat("the memory has ", Size().count(), " bytes"));
  }
  const uint64_t end = offset.count() + size.count();
  uint64_t start = 0;  // Of the buffer.
  for (const DeviceBuffer& buffer : buffers_) {
    const uint64_t part_begin = std::max(offset.count(), start);
    const uint64_t part_end = std::min(end, start + buffer.size().count());
    if (part_begin < part_end) {
      HB_RETURN_IF_ERROR(
          buffer.Invalidate(Bytes(part_begin - start), Bytes(part_end - part_begin)));
      HB_RETURN_IF_ERROR(visit(static_cast<uint8_t*>(buffer.mapped()) + (part_begin - start),
                               part_begin, part_end - part_begin));
      HB_RETURN_IF_ERROR(buffer.Flush(Bytes(part_begin - start), Bytes(part_end - part_begin)));
    }
    start += buffer.size().count();
  }
  return absl::OkStatus();
}

absl::Status HeldMemory::Fill(Bytes offset, Bytes size, uint64_t seed) {
  return ForEachPart(offset, size, [seed](uint8_t* bytes, uint64_t at, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) bytes[i] = PatternByte(seed, at + i);
    return absl::OkStatus();
  });
}

absl::Status HeldMemory::CheckPattern(Bytes offset, Bytes size, uint64_t seed) const {
  return ForEachPart(offset, size, [seed](const uint8_t* bytes, uint64_t at, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint8_t expected = PatternByte(seed, at + i);
      if (bytes[i] == expected) continue;
      return absl::DataLossError(
          absl::StrCat("byte ", at + i, " is ", int{bytes[i]}, " and should be ", int{expected}));
    }
    return absl::OkStatus();
  });
}

absl::Status HeldMemory::CheckZeros() const {
  if (buffers_.empty()) return absl::FailedPreconditionError("not imported");
  for (const DeviceBuffer& buffer : buffers_) {
    HB_RETURN_IF_ERROR(buffer.Invalidate(Bytes(0), buffer.size()));
    // The mapping covers the memory, which is larger than the buffer.
    const auto* const bytes = static_cast<const uint8_t*>(buffer.mapped());
    const uint64_t count = buffer.facts().allocation_size.count();
    // Each byte equals the one before it, and the first is zero.
    if (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0) continue;
    const uint64_t at =
        std::find_if(bytes, bytes + count, [](uint8_t b) { return b != 0; }) - bytes;
    return absl::DataLossError(absl::StrCat("byte ", at, " of block ", buffer.facts().block_id,
                                            " is ", int{bytes[at]}, " and should be 0"));
  }
  return absl::OkStatus();
}

absl::Status HeldMemory::CopyFrom(const HeldMemory& source, VulkanImporter& importer) {
  if (buffers_.size() != 1 || source.buffers_.size() != 1 || Size() < source.Size()) {
    return absl::FailedPreconditionError("copies one imported block to one as large");
  }
  HB_RETURN_IF_ERROR(importer.SubmitAndWait(
      [&](VkCommandBuffer commands) { RecordCopy(commands, source.buffers_[0], buffers_[0]); }));
  return buffers_[0].Invalidate(Bytes(0), buffers_[0].size());
}

absl::Status HeldMemory::Unimport(VulkanImporter& importer) {
  const absl::Status released = importer.ReleaseAll(buffers_);
  buffers_.clear();
  return released;
}

absl::Status HeldMemory::Seal(VulkanImporter& importer) {
  Checksummer checksummer;
  HB_RETURN_IF_ERROR(
      ForEachPart(Bytes(0), Size(), [&](const uint8_t* bytes, uint64_t, uint64_t count) {
        checksummer.Add(bytes, Bytes(count));
        return absl::OkStatus();
      }));
  HB_RETURN_IF_ERROR(importer.ReleaseAll(buffers_));
  HB_RETURN_IF_ERROR(segment_.Seal(checksummer.Finish()));
  return importer.AcquireAll(buffers_);
}

absl::Status HeldMemory::SealUnread() { return segment_.Seal(Checksum{}); }

absl::Status HeldMemory::GiveBack() { return lease_.held() ? lease_.Release() : segment_.Close(); }

}  // namespace heapbroker

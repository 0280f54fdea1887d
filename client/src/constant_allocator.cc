// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/constant_allocator.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/buffer_ranges.h"
#include "common/base/status_macros.h"
#include "heapbroker/checksum.h"

namespace heapbroker {
namespace {

std::string FormatChecksum(Checksum checksum) {
  return absl::StrCat(absl::Hex(checksum.high, absl::kZeroPad16),
                      absl::Hex(checksum.low, absl::kZeroPad16));
}

absl::StatusOr<BlockRun> RunOf(const Segment& segment) {
  std::vector<Bytes> sizes;
  for (const auto& block : segment.blocks()) sizes.push_back(block->facts().size);
  HB_ASSIGN_OR_RETURN(BlockRun run, BlockRun::Of(sizes));
  if (run.size() == segment.size()) return run;
  return absl::InternalError(absl::StrCat("the blocks of segment ", segment.name(), " hold ",
                                          run.size().count(), " bytes and it has ",
                                          segment.size().count()));
}

// Reading and writing take as long as the bytes do.
CallLimits LimitsOf(const CallOptions& call) { return CallLimits(call, absl::InfiniteDuration()); }

// A call of the daemon.
CallOptions CallWithin(const CallLimits& limits) {
  if (limits.endless()) return {.cancellation = limits.cancellation()};
  return LeftOf(limits);
}

TransferOptions TransferWithin(const CallLimits& limits) {
  return {.cancellation = limits.cancellation(), .timeout = limits.left()};
}

}  // namespace

SegmentAllocator::SegmentAllocator(VulkanImporter& importer, Segment segment, BlockRun run,
                                   std::unique_ptr<Transfers> transfers)
    : importer_(importer),
      segment_(std::move(segment)),
      run_(std::move(run)),
      transfers_(std::move(transfers)) {}

absl::StatusOr<std::unique_ptr<SegmentAllocator>> SegmentAllocator::Create(
    const Client& client, VulkanImporter& importer, Segment segment, const CallLimits& limits) {
  absl::StatusOr<BlockRun> run = RunOf(segment);
  TransfersOptions options;
  if (!segment.blocks().empty()) options.device_index = segment.blocks()[0]->facts().device_index;
  absl::StatusOr<std::unique_ptr<Transfers>> transfers =
      Transfers::Create(client, importer, options);
  absl::Status made = run.status();
  made.Update(transfers.status());
  if (!made.ok()) {
    segment.CloseLater();
    return made;
  }
  std::unique_ptr<SegmentAllocator> allocator(
      new SegmentAllocator(importer, std::move(segment), *std::move(run), *std::move(transfers)));
  made = allocator->Import(limits);
  if (made.ok()) return allocator;
  allocator->CloseLater();
  return made;
}

absl::Status SegmentAllocator::Import(const CallLimits& limits) {
  std::vector<const MemoryBlock*> blocks;
  for (const auto& block : segment_.blocks()) blocks.push_back(block.get());
  HB_RETURN_IF_ERROR(MemoryBlock::FetchAll(blocks, LeftOf(limits)));
  for (const auto& block : segment_.blocks()) {
    HB_ASSIGN_OR_RETURN(
        DeviceBuffer buffer,
        importer_.Import(*block, ArenaUsage(block->facts(), importer_.context()), LeftOf(limits)));
    buffers_.push_back(std::move(buffer));
  }
  return absl::OkStatus();
}

void SegmentAllocator::CloseLater() {
  buffers_.clear();
  segment_.CloseLater();
}

absl::StatusOr<BufferRange> SegmentAllocator::get_offset_address(Bytes offset, Bytes size) const {
  HB_ASSIGN_OR_RETURN(const BlockRun::Piece piece, run_.Locate(offset, size));
  if (buffers_.empty()) return BufferRange();
  return BufferRange(buffers_[piece.block], piece.offset, piece.size);
}

absl::Status SegmentAllocator::CheckFilling(absl::string_view what) const {
  if (must_fill()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": ",
                   segment_.attached() ? absl::StrCat("segment ", segment_.name(), " is sealed")
                                       : "the plan has no constant segment",
                   "; only a process whose must_fill() is true may fill it, and only once"));
}

absl::Status SegmentAllocator::Write(Bytes offset, const void* data, Bytes size,
                                     const CallOptions& call) {
  const CallLimits limits = LimitsOf(call);
  HB_RETURN_IF_ERROR(CheckFilling("Write"));
  HB_ASSIGN_OR_RETURN(const std::vector<BlockRun::Piece> pieces, run_.Split(offset, size));
  const char* next = static_cast<const char*>(data);
  for (const BlockRun::Piece& piece : pieces) {
    HB_RETURN_IF_ERROR(transfers_->Upload(buffers_[piece.block], piece.offset, next, piece.size,
                                          TransferWithin(limits)));
    next += piece.size.count();
  }
  return absl::OkStatus();
}

absl::StatusOr<Checksum> SegmentAllocator::ComputeChecksum(const CallLimits& limits) {
  Checksummer checksummer;
  for (const DeviceBuffer& buffer : buffers_) {
    HB_RETURN_IF_ERROR(transfers_->DownloadTo(
        buffer, Bytes(0), buffer.size(),
        [&](const void* data, Bytes size) {
          checksummer.Add(data, size);
          return absl::OkStatus();
        },
        TransferWithin(limits)));
  }
  // All was read, and the staging buffers go in any case.
  transfers_->ReleaseStaging(CallWithin(limits)).IgnoreError();
  return checksummer.Finish();
}

absl::Status SegmentAllocator::Seal(const CallOptions& call) {
  const CallLimits limits = LimitsOf(call);
  HB_RETURN_IF_ERROR(CheckFilling("Seal"));
  // The application may have written through a range's host().
  for (const DeviceBuffer& buffer : buffers_) {
    if (buffer.mapped() != nullptr) HB_RETURN_IF_ERROR(buffer.Flush(Bytes(0), buffer.size()));
  }
  HB_ASSIGN_OR_RETURN(const Checksum checksum, ComputeChecksum(limits));
  HB_RETURN_IF_ERROR(importer_.ReleaseAll(buffers_));
  const absl::Status sealed = segment_.Seal(checksum, CallWithin(limits));
  // Also after a refusal: the buffers are this device's again either way.
  HB_RETURN_IF_ERROR(importer_.AcquireAll(buffers_));
  return sealed;
}

absl::Status SegmentAllocator::Verify(const CallOptions& call) {
  if (!segment_.checksum()) {
    return absl::FailedPreconditionError("Verify: nothing is sealed yet");
  }
  HB_ASSIGN_OR_RETURN(const Checksum found, ComputeChecksum(LimitsOf(call)));
  if (found == *segment_.checksum()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "segment ", segment_.name(), " was sealed with checksum ",
      FormatChecksum(*segment_.checksum()), " and has ", FormatChecksum(found),
      "; a process of this tenant wrote into it: close it everywhere and load it anew"));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

absl::Status BadField(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
}

// proto3 keeps numbers that the enum does not have.
absl::StatusOr<MemoryKind> KindOf(v1::MemoryKind kind, absl::string_view field) {
  switch (kind) {
    case v1::MEMORY_KIND_UNSPECIFIED:
    case v1::MEMORY_KIND_DEVICE_LOCAL:
      return MemoryKind::kDeviceLocal;
    case v1::MEMORY_KIND_HOST_VISIBLE:
      return MemoryKind::kHostVisible;
    case v1::MEMORY_KIND_HOST_CACHED:
      return MemoryKind::kHostCached;
    case v1::MEMORY_KIND_DEVICE_LOCAL_HOST_VISIBLE:
      return MemoryKind::kDeviceLocalHostVisible;
    default:
      return BadField(field, absl::StrCat(static_cast<int>(kind),
                                          " is no MemoryKind of this daemon; allowed are ",
                                          static_cast<int>(v1::MemoryKind_MIN), " to ",
                                          static_cast<int>(v1::MemoryKind_MAX)));
  }
}

absl::StatusOr<OpenMode> ModeOf(const v1::OpenSegmentRequest& message) {
  switch (message.mode()) {
    case v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH:
      return OpenMode::kCreateOrAttach;
    case v1::OpenSegmentRequest::MODE_ATTACH:
      return message.wait() ? OpenMode::kAttachWait : OpenMode::kAttach;
    case v1::OpenSegmentRequest::MODE_UNSPECIFIED:
      return BadField("mode", "is unset; say MODE_CREATE_OR_ATTACH or MODE_ATTACH");
    default:
      return BadField("mode", absl::StrCat(static_cast<int>(message.mode()),
                                           " is no mode of this daemon; allowed are "
                                           "MODE_CREATE_OR_ATTACH (1) and MODE_ATTACH (2)"));
  }
}

absl::StatusOr<SegmentId> CheckSegmentId(uint64_t id) {
  if (id == 0) return BadField("segment_id", "is unset; allowed is what OpenSegment answered");
  return SegmentId(id);
}

v1::HandleType HandleTypeMessage(HandleType type) {
  switch (type) {
    case HandleType::kOpaqueFd:
      return v1::HANDLE_TYPE_OPAQUE_FD;
    case HandleType::kDmaBuf:
      return v1::HANDLE_TYPE_DMA_BUF;
  }
  return v1::HANDLE_TYPE_UNSPECIFIED;
}

void FillBlock(const GrantedBlock& block, const DeviceInfo& device, v1::Block& out) {
  const uint32_t memory_type = block.block_class.memory_type;
  out.set_block_id(block.id.value());
  out.set_size(block.size.count());
  out.set_allocation_size(block.allocation_size.count());
  out.set_memory_type_index(memory_type);
  out.set_memory_property_flags(device.memory_types[memory_type].property_flags);
  out.set_handle_type(HandleTypeMessage(block.block_class.handle_type));
  out.set_device_index(device.index);
}

}  // namespace

absl::StatusOr<std::vector<BlockRequest>> BlockRequestsOf(const v1::AllocateRequest& message) {
  std::vector<BlockRequest> requests;
  requests.reserve(message.blocks_size());
  for (const v1::BlockRequest& block : message.blocks()) {
    BlockRequest request;
    request.size = Bytes(block.size());
    request.alignment = Bytes(block.alignment());
    HB_ASSIGN_OR_RETURN(request.memory,
                        KindOf(block.kind(), absl::StrCat("blocks[", requests.size(), "].kind")));
    request.zeroed = block.zeroed();
    requests.push_back(request);
  }
  return requests;
}

absl::StatusOr<std::vector<BlockId>> BlockIdsOf(const v1::ReleaseRequest& message) {
  std::vector<BlockId> ids;
  ids.reserve(message.block_ids_size());
  for (const uint64_t id : message.block_ids()) {
    if (id == 0) {
      return BadField(absl::StrCat("block_ids[", ids.size(), "]"),
                      "is 0, which is no block; allowed is what Allocate answered");
    }
    ids.push_back(BlockId(id));
  }
  return ids;
}

absl::StatusOr<OpenSegmentRequest> OpenSegmentRequestOf(const v1::OpenSegmentRequest& message) {
  OpenSegmentRequest request;
  HB_RETURN_IF_ERROR(CheckName("name", message.name()));
  request.name = message.name();
  HB_ASSIGN_OR_RETURN(request.mode, ModeOf(message));
  if (request.mode != OpenMode::kCreateOrAttach) {
    if (message.size() != 0) return BadField("size", "must be unset with MODE_ATTACH");
    if (message.kind() != v1::MEMORY_KIND_UNSPECIFIED) {
      return BadField("kind", "must be unset with MODE_ATTACH");
    }
    return request;
  }
  request.size = Bytes(message.size());
  HB_ASSIGN_OR_RETURN(request.memory, KindOf(message.kind(), "kind"));
  return request;
}

absl::StatusOr<SegmentId> SegmentIdOf(const v1::SealSegmentRequest& message) {
  return CheckSegmentId(message.segment_id());
}

absl::StatusOr<SegmentId> SegmentIdOf(const v1::CloseSegmentRequest& message) {
  return CheckSegmentId(message.segment_id());
}

absl::StatusOr<Checksum> ChecksumOf(const v1::SealSegmentRequest& message) {
  if (!message.has_checksum()) {
    return BadField("checksum", "is unset; send the XXH3-128 of the segment's bytes");
  }
  return Checksum{.high = message.checksum().high(), .low = message.checksum().low()};
}

v1::AllocateResponse AllocateMessage(const Grant& grant, const DeviceInfo& device) {
  v1::AllocateResponse message;
  for (const GrantedBlock& block : grant.blocks) FillBlock(block, device, *message.add_blocks());
  return message;
}

v1::OpenSegmentResponse OpenSegmentMessage(const SegmentView& segment, const DeviceInfo& device) {
  v1::OpenSegmentResponse message;
  message.set_segment_id(segment.id.value());
  message.set_writer(segment.writer);
  message.set_size(segment.size.count());
  for (const GrantedBlock& block : segment.blocks) FillBlock(block, device, *message.add_blocks());
  if (segment.checksum.has_value()) {
    *message.mutable_checksum() = ChecksumMessage(*segment.checksum);
  }
  return message;
}

v1::Checksum ChecksumMessage(const Checksum& checksum) {
  v1::Checksum message;
  message.set_high(checksum.high);
  message.set_low(checksum.low);
  return message;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "daemon/core/memory_type_wish.h"
#include "daemon/messages/device_message.h"
#include "daemon/rpc/convert_time.h"

namespace heapbroker {
namespace {

absl::Status BadField(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
}

// Before anything is done for each entry of a list. That there is none is for others to
// judge.
absl::Status CheckNotTooMany(absl::string_view field, int entries) {
  return entries == 0 ? absl::OkStatus() : CheckBlockCount(field, entries);
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

absl::StatusOr<MemoryTypeWish> WishOf(absl::string_view heap_key, absl::string_view field) {
  absl::StatusOr<MemoryTypeWish> wish = ParseMemoryTypeWish(heap_key);
  if (!wish.ok()) return BadField(field, wish.status().message());
  if (wish->transient) {
    return BadField(field,
                    "\"transient\" is no property of memory but of a request; set "
                    "BlockRequest.transient instead");
  }
  return wish;
}

// The oneof `memory` of `message`. `prefix` comes before the names of its fields.
template <typename Message>
absl::StatusOr<MemoryWish> MemoryOf(const Message& message, absl::string_view prefix) {
  switch (message.memory_case()) {
    case Message::kHeapKey:
      return WishOf(message.heap_key(), absl::StrCat(prefix, "heap_key"));
    case Message::kMemoryTypeIndex:
      return MemoryTypeIndex{message.memory_type_index()};
    case Message::kKind:
    case Message::MEMORY_NOT_SET:
      break;
  }
  return KindOf(message.kind(), absl::StrCat(prefix, "kind"));
}

absl::StatusOr<std::optional<HandleType>> HandleTypeOf(v1::HandleType type,
                                                       absl::string_view field) {
  switch (type) {
    case v1::HANDLE_TYPE_UNSPECIFIED:
      return std::optional<HandleType>();
    case v1::HANDLE_TYPE_OPAQUE_FD:
      return HandleType::kOpaqueFd;
    case v1::HANDLE_TYPE_DMA_BUF:
      return HandleType::kDmaBuf;
    default:
      return BadField(field, absl::StrCat(static_cast<int>(type),
                                          " is no HandleType of this daemon; allowed are ",
                                          static_cast<int>(v1::HandleType_MIN), " to ",
                                          static_cast<int>(v1::HandleType_MAX)));
  }
}

absl::StatusOr<Priority> PriorityOf(v1::Priority priority) {
  switch (priority) {
    case v1::PRIORITY_LOW:
      return Priority::kLow;
    case v1::PRIORITY_UNSPECIFIED:
    case v1::PRIORITY_NORMAL:
      return Priority::kNormal;
    case v1::PRIORITY_HIGH:
      return Priority::kHigh;
    default:
      return BadField("priority", absl::StrCat(static_cast<int>(priority),
                                               " is no Priority of this daemon; allowed are ",
                                               static_cast<int>(v1::Priority_MIN), " to ",
                                               static_cast<int>(v1::Priority_MAX)));
  }
}

// The refusal of a request that has waited long enough must still reach the
// client, which takes a deadline that passes for an answer that got lost.
absl::Time LastMomentBefore(const CallTimes& times) {
  constexpr absl::Duration kMostForTheAnswer = absl::Milliseconds(100);
  return times.deadline - std::min((times.deadline - times.now) / 10, kMostForTheAnswer);
}

// A time that every clock and every recording can say, and that nobody who waits
// tells from what he asked for.
constexpr absl::Duration kLongestWait = absl::Hours(24 * 365 * 100);

// Until when a request may wait, by its field `max_wait` and by its call.
template <typename Message>
absl::StatusOr<std::optional<absl::Time>> WaitUntilOf(const Message& message,
                                                      const CallTimes& times) {
  absl::Time until = LastMomentBefore(times);
  if (message.has_max_wait()) {
    HB_ASSIGN_OR_RETURN(const absl::Duration max_wait, DurationOf(message.max_wait(), "max_wait"));
    until = std::min(until, times.now + max_wait);
  }
  // Who has no deadline and names no time would wait for ever.
  if (until == absl::InfiniteFuture() || until <= times.now) return std::optional<absl::Time>();
  return std::min(until, times.now + kLongestWait);
}

absl::StatusOr<BlockRequest> BlockRequestOf(const v1::BlockRequest& message,
                                            absl::string_view prefix) {
  BlockRequest request;
  request.size = Bytes(message.size());
  request.alignment = Bytes(message.alignment());
  HB_ASSIGN_OR_RETURN(request.memory, MemoryOf(message, prefix));
  HB_ASSIGN_OR_RETURN(request.handle_type,
                      HandleTypeOf(message.handle_type(), absl::StrCat(prefix, "handle_type")));
  request.device_address = message.device_address();
  request.dedicated = message.dedicated();
  request.transient = message.transient();
  request.zeroed = message.zeroed();
  return request;
}

absl::StatusOr<std::vector<BlockId>> BlockIdsOf(const v1::ReleaseRequest& message) {
  std::vector<BlockId> ids;
  HB_RETURN_IF_ERROR(CheckNotTooMany("block_ids", message.block_ids_size()));
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

// With MODE_ATTACH the segment is what its creator made it.
absl::Status CheckAttach(const v1::OpenSegmentRequest& message) {
  const auto unset = [](absl::string_view field) {
    return BadField(field, "must be unset with MODE_ATTACH");
  };
  if (message.size() != 0) return unset("size");
  if (message.has_heap_key()) return unset("heap_key");
  if (message.has_memory_type_index()) return unset("memory_type_index");
  if (message.kind() != v1::MEMORY_KIND_UNSPECIFIED) return unset("kind");
  if (message.handle_type() != v1::HANDLE_TYPE_UNSPECIFIED) return unset("handle_type");
  return absl::OkStatus();
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
  out.set_device_address(block.block_class.device_address);
  out.set_dedicated(block.block_class.dedicated);
}

}  // namespace

absl::StatusOr<AllocateRequest> AllocateRequestOf(const v1::AllocateRequest& message,
                                                  const CallTimes& times) {
  HB_RETURN_IF_ERROR(CheckNotTooMany("blocks", message.blocks_size()));
  AllocateRequest request;
  request.request_id = RequestId(message.request_id());
  HB_ASSIGN_OR_RETURN(request.priority, PriorityOf(message.priority()));
  HB_ASSIGN_OR_RETURN(request.wait_until, WaitUntilOf(message, times));
  request.blocks.reserve(message.blocks_size());
  for (const v1::BlockRequest& block : message.blocks()) {
    HB_ASSIGN_OR_RETURN(
        BlockRequest converted,
        BlockRequestOf(block, absl::StrCat("blocks[", request.blocks.size(), "].")));
    request.blocks.push_back(converted);
  }
  return request;
}

absl::StatusOr<ReleaseTarget> ReleaseTargetOf(const v1::ReleaseRequest& message) {
  ReleaseTarget target;
  target.request = RequestId(message.request_id());
  HB_ASSIGN_OR_RETURN(target.blocks, BlockIdsOf(message));
  const bool by_request = message.request_id() != 0;
  if (by_request && !target.blocks.empty()) {
    return BadField("request_id", "is set beside `block_ids`; send one of both");
  }
  if (!by_request && target.blocks.empty()) {
    return BadField("block_ids", "is empty; say which blocks, or set `request_id` instead");
  }
  if (!by_request && message.has_device_index()) {
    return BadField("device_index", "goes with `request_id`; blocks tell their device themselves");
  }
  return target;
}

absl::StatusOr<OpenSegmentRequest> OpenSegmentRequestOf(const v1::OpenSegmentRequest& message,
                                                        const CallTimes& times) {
  OpenSegmentRequest request;
  HB_RETURN_IF_ERROR(CheckName("name", message.name()));
  request.name = message.name();
  HB_ASSIGN_OR_RETURN(request.mode, ModeOf(message));
  HB_ASSIGN_OR_RETURN(request.wait_until, WaitUntilOf(message, times));
  if (request.mode != OpenMode::kCreateOrAttach) {
    HB_RETURN_IF_ERROR(CheckAttach(message));
    return request;
  }
  request.size = Bytes(message.size());
  HB_ASSIGN_OR_RETURN(request.memory, MemoryOf(message, ""));
  HB_ASSIGN_OR_RETURN(request.handle_type, HandleTypeOf(message.handle_type(), "handle_type"));
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

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/convert.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

absl::StatusOr<Uuid> UuidFrom(const std::string& bytes) {
  Uuid uuid;
  if (bytes.size() != uuid.size()) {
    return absl::InternalError(
        absl::StrCat("the daemon described a device with a UUID of ", bytes.size(), " bytes"));
  }
  std::copy(bytes.begin(), bytes.end(), uuid.begin());
  return uuid;
}

// Unset for one that this library does not know.
std::optional<HandleType> HandleTypeFrom(int message) {
  switch (message) {
    case v1::HANDLE_TYPE_OPAQUE_FD:
      return HandleType::kOpaqueFd;
    case v1::HANDLE_TYPE_DMA_BUF:
      return HandleType::kDmaBuf;
    default:
      return std::nullopt;
  }
}

std::vector<HandleType> HandleTypesFrom(const google::protobuf::RepeatedField<int>& messages) {
  std::vector<HandleType> known;
  for (const int message : messages) {
    if (const std::optional<HandleType> type = HandleTypeFrom(message)) known.push_back(*type);
  }
  return known;
}

v1::HandleType ToMessage(HandleType type) {
  return type == HandleType::kDmaBuf ? v1::HANDLE_TYPE_DMA_BUF : v1::HANDLE_TYPE_OPAQUE_FD;
}

v1::Priority ToMessage(Priority priority) {
  switch (priority) {
    case Priority::kLow:
      return v1::PRIORITY_LOW;
    case Priority::kNormal:
      return v1::PRIORITY_NORMAL;
    case Priority::kHigh:
      return v1::PRIORITY_HIGH;
  }
  return v1::PRIORITY_UNSPECIFIED;
}

google::protobuf::Duration ToMessage(absl::Duration duration) {
  // What that message can say at most, about ten thousand years.
  constexpr absl::Duration kLongest = absl::Seconds(315'576'000'000);
  duration = std::clamp(duration, -kLongest, kLongest);
  google::protobuf::Duration message;
  message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return message;
}

absl::Duration FromMessage(const google::protobuf::Duration& message) {
  return absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

// `message` has the three fields of the choice.
template <typename Message>
void SetMemory(const MemoryChoice& memory, Message& message) {
  if (const auto* const kind = std::get_if<MemoryKind>(&memory)) {
    message.set_kind(ToMessage(*kind));
  } else if (const auto* const key = std::get_if<HeapKey>(&memory)) {
    message.set_heap_key(key->text);
  } else if (const auto* const type = std::get_if<MemoryTypeIndex>(&memory)) {
    message.set_memory_type_index(type->index);
  }
}

absl::StatusOr<BrokerDevice> FromMessage(const v1::Device& message) {
  BrokerDevice device{.index = message.index(),
                      .name = message.name(),
                      .driver_info = message.driver_info(),
                      .software = message.software(),
                      .max_allocation_size = Bytes(message.max_allocation_size()),
                      .device_addresses = message.device_addresses(),
                      .dedicated_only = HandleTypesFrom(message.dedicated_only())};
  HB_ASSIGN_OR_RETURN(device.device_uuid, UuidFrom(message.device_uuid()));
  HB_ASSIGN_OR_RETURN(device.driver_uuid, UuidFrom(message.driver_uuid()));
  for (const v1::Heap& heap : message.heaps()) {
    device.heaps.push_back({.size = Bytes(heap.size()), .device_local = heap.device_local()});
  }
  for (const v1::MemoryType& type : message.memory_types()) {
    device.memory_types.push_back({.heap_index = type.heap_index(),
                                   .property_flags = type.property_flags(),
                                   .exportable = type.exportable(),
                                   .handle_types = HandleTypesFrom(type.handle_types())});
  }
  return device;
}

}  // namespace

v1::MemoryKind ToMessage(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDeviceLocal:
      return v1::MEMORY_KIND_DEVICE_LOCAL;
    case MemoryKind::kHostVisible:
      return v1::MEMORY_KIND_HOST_VISIBLE;
    case MemoryKind::kHostCached:
      return v1::MEMORY_KIND_HOST_CACHED;
    case MemoryKind::kDeviceLocalHostVisible:
      return v1::MEMORY_KIND_DEVICE_LOCAL_HOST_VISIBLE;
  }
  return v1::MEMORY_KIND_UNSPECIFIED;
}

v1::BlockRequest ToMessage(const AllocationRequest& request) {
  v1::BlockRequest message;
  message.set_size(request.size.count());
  message.set_alignment(request.alignment.count());
  SetMemory(request.memory, message);
  if (request.handle_type) message.set_handle_type(ToMessage(*request.handle_type));
  message.set_device_address(request.device_address);
  message.set_dedicated(request.dedicated);
  message.set_transient(request.transient);
  message.set_zeroed(request.zeroed);
  return message;
}

v1::AllocateRequest ToMessage(absl::Span<const AllocationRequest> requests,
                              const AllocateOptions& options) {
  v1::AllocateRequest message;
  for (const AllocationRequest& request : requests) *message.add_blocks() = ToMessage(request);
  message.set_request_id(options.request_id);
  message.set_priority(ToMessage(options.priority));
  message.set_device_index(options.device_index);
  if (options.max_wait) *message.mutable_max_wait() = ToMessage(*options.max_wait);
  return message;
}

v1::OpenSegmentRequest ToMessage(const SegmentOptions& options) {
  v1::OpenSegmentRequest message;
  message.set_name(options.name);
  message.set_wait(options.wait);
  message.set_size(options.size.count());
  message.set_device_index(options.device_index);
  if (options.max_wait) *message.mutable_max_wait() = ToMessage(*options.max_wait);
  if (options.mode == SegmentOptions::Mode::kAttach) {
    // Whoever attaches takes the memory as it is.
    message.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  } else {
    message.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
    SetMemory(options.memory, message);
    if (options.handle_type) message.set_handle_type(ToMessage(*options.handle_type));
  }
  return message;
}

v1::Checksum ToMessage(Checksum checksum) {
  v1::Checksum message;
  message.set_high(checksum.high);
  message.set_low(checksum.low);
  return message;
}

v1::WatchRequest ToMessage(const std::vector<IdleMemory>& idle) {
  v1::WatchRequest message;
  for (const IdleMemory& memory : idle) {
    v1::IdleBytes& bytes = *message.add_idle();
    bytes.set_device_index(memory.device_index);
    bytes.set_heap_index(memory.heap_index);
    bytes.set_bytes(memory.bytes.count());
  }
  return message;
}

GiveBackRequest FromMessage(const v1::GiveBack& message) {
  return {.device_index = message.device_index(),
          .heap_index = message.heap_index(),
          .bytes = Bytes(message.bytes()),
          .time = FromMessage(message.time())};
}

Checksum FromMessage(const v1::Checksum& message) {
  return {.high = message.high(), .low = message.low()};
}

absl::StatusOr<std::vector<BrokerDevice>> DevicesFrom(const v1::Welcome& welcome) {
  std::vector<BrokerDevice> devices;
  for (const v1::Device& message : welcome.devices()) {
    HB_ASSIGN_OR_RETURN(BrokerDevice device, FromMessage(message));
    if (device.index != devices.size()) {
      return absl::InternalError("the daemon listed its devices out of order");
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

absl::StatusOr<ImportFacts> FromMessage(const v1::Block& message, size_t device_count) {
  const std::optional<HandleType> handle_type = HandleTypeFrom(message.handle_type());
  if (!handle_type) {
    return absl::InternalError(absl::StrCat("block ", message.block_id(), " has handle type ",
                                            static_cast<int>(message.handle_type()),
                                            ", which this library does not know; update it"));
  }
  if (message.device_index() >= device_count || message.block_id() == 0 || message.size() == 0 ||
      message.size() > message.allocation_size()) {
    return absl::InternalError(
        absl::StrCat("the daemon's description of block ", message.block_id(), " makes no sense"));
  }
  return ImportFacts{.block_id = message.block_id(),
                     .size = Bytes(message.size()),
                     .allocation_size = Bytes(message.allocation_size()),
                     .memory_type_index = message.memory_type_index(),
                     .memory_property_flags = message.memory_property_flags(),
                     .handle_type = *handle_type,
                     .device_index = message.device_index(),
                     .device_address = message.device_address(),
                     .dedicated = message.dedicated()};
}

absl::StatusOr<std::vector<ImportFacts>> FromMessage(
    const google::protobuf::RepeatedPtrField<v1::Block>& messages, size_t device_count) {
  std::vector<ImportFacts> all;
  all.reserve(static_cast<size_t>(messages.size()));
  for (const v1::Block& message : messages) {
    HB_ASSIGN_OR_RETURN(const ImportFacts facts, FromMessage(message, device_count));
    all.push_back(facts);
  }
  return all;
}

}  // namespace heapbroker

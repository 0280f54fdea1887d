// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/convert.h"

#include <algorithm>
#include <string>

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

absl::StatusOr<BrokerDevice> FromMessage(const v1::Device& message) {
  BrokerDevice device{.index = message.index(),
                      .name = message.name(),
                      .driver_info = message.driver_info(),
                      .software = message.software(),
                      .max_allocation_size = Bytes(message.max_allocation_size())};
  HB_ASSIGN_OR_RETURN(device.device_uuid, UuidFrom(message.device_uuid()));
  HB_ASSIGN_OR_RETURN(device.driver_uuid, UuidFrom(message.driver_uuid()));
  for (const v1::Heap& heap : message.heaps()) {
    device.heaps.push_back({.size = Bytes(heap.size()), .device_local = heap.device_local()});
  }
  for (const v1::MemoryType& type : message.memory_types()) {
    device.memory_types.push_back({.heap_index = type.heap_index(),
                                   .property_flags = type.property_flags(),
                                   .exportable = type.exportable()});
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
  message.set_kind(ToMessage(request.kind));
  message.set_zeroed(request.zeroed);
  return message;
}

v1::OpenSegmentRequest ToMessage(const SegmentOptions& options) {
  v1::OpenSegmentRequest message;
  message.set_name(options.name);
  message.set_wait(options.wait);
  message.set_size(options.size.count());
  if (options.mode == SegmentOptions::Mode::kAttach) {
    // Whoever attaches takes the kind as it is.
    message.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  } else {
    message.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
    message.set_kind(ToMessage(options.kind));
  }
  return message;
}

v1::Checksum ToMessage(Checksum checksum) {
  v1::Checksum message;
  message.set_high(checksum.high);
  message.set_low(checksum.low);
  return message;
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
  if (message.handle_type() != v1::HANDLE_TYPE_OPAQUE_FD) {
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
                     .handle_type = HandleType::kOpaqueFd,
                     .device_index = message.device_index()};
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

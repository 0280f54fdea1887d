// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_refusal.h"

#include <optional>
#include <string>

#include "common/grpc/status.h"
#include "google/rpc/status.pb.h"

namespace heapbroker {

v1::MemoryRefusal::Limit LimitMessage(LimitKind limit) {
  switch (limit) {
    case LimitKind::kHeapBudget:
      return v1::MemoryRefusal::LIMIT_HEAP_BUDGET;
    case LimitKind::kMaxAllocationSize:
      return v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_SIZE;
    case LimitKind::kMaxAllocationCount:
      return v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_COUNT;
    case LimitKind::kDescriptors:
      return v1::MemoryRefusal::LIMIT_DESCRIPTORS;
    case LimitKind::kMemoryMaps:
      return v1::MemoryRefusal::LIMIT_MEMORY_MAPS;
    case LimitKind::kDriver:
      return v1::MemoryRefusal::LIMIT_DRIVER;
    case LimitKind::kWaitingCalls:
      return v1::MemoryRefusal::LIMIT_WAITING_CALLS;
    case LimitKind::kWaitingBlocks:
      return v1::MemoryRefusal::LIMIT_WAITING_BLOCKS;
  }
  return v1::MemoryRefusal::LIMIT_UNSPECIFIED;
}

v1::MemoryRefusal RefusalMessage(const Refusal& refusal, uint32_t device_index) {
  v1::MemoryRefusal message;
  message.set_never_fits(refusal.kind == RefusalKind::kNeverFits);
  message.set_limit(LimitMessage(refusal.limit));
  if (refusal.heap.has_value()) message.set_heap_index(*refusal.heap);
  message.set_value(refusal.value);
  message.set_in_use(refusal.in_use);
  message.set_requested(refusal.requested);
  message.set_largest_now(refusal.largest_now);
  message.set_free(refusal.free);
  message.set_device_index(device_index);
  return message;
}

absl::Status WithDetails(absl::Status status, const Refusal& refusal, uint32_t device_index) {
  google::rpc::Status details;
  details.set_code(static_cast<int32_t>(status.code()));
  details.set_message(std::string(status.message()));
  details.add_details()->PackFrom(RefusalMessage(refusal, device_index));
  SetStatusDetails(status, details.SerializeAsString());
  return status;
}

absl::Status WithRefusalDetails(const absl::Status& status, uint32_t device_index) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  return refusal.has_value() ? WithDetails(status, *refusal, device_index) : status;
}

}  // namespace heapbroker

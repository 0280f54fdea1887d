// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_refusal.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"
#include "client/transport/refusal.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {
namespace {

MemoryRefusal::Limit FromMessage(v1::MemoryRefusal::Limit limit) {
  switch (limit) {
    case v1::MemoryRefusal::LIMIT_HEAP_BUDGET:
      return MemoryRefusal::Limit::kHeapBudget;
    case v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_SIZE:
      return MemoryRefusal::Limit::kMaxAllocationSize;
    case v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_COUNT:
      return MemoryRefusal::Limit::kMaxAllocationCount;
    case v1::MemoryRefusal::LIMIT_DESCRIPTORS:
      return MemoryRefusal::Limit::kDescriptors;
    case v1::MemoryRefusal::LIMIT_MEMORY_MAPS:
      return MemoryRefusal::Limit::kMemoryMaps;
    case v1::MemoryRefusal::LIMIT_DRIVER:
      return MemoryRefusal::Limit::kDriver;
    case v1::MemoryRefusal::LIMIT_WAITING_CALLS:
      return MemoryRefusal::Limit::kWaitingCalls;
    case v1::MemoryRefusal::LIMIT_WAITING_BLOCKS:
      return MemoryRefusal::Limit::kWaitingBlocks;
    default:
      return MemoryRefusal::Limit::kUnknown;
  }
}

}  // namespace

std::optional<MemoryRefusal> RefusalOf(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return std::nullopt;
  const absl::optional<absl::Cord> payload = status.GetPayload(kRefusalTypeUrl);
  v1::MemoryRefusal message;
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) return std::nullopt;
  MemoryRefusal refusal{.never_fits = message.never_fits(),
                        .limit = FromMessage(message.limit()),
                        .device_index = message.device_index(),
                        .value = message.value(),
                        .in_use = message.in_use(),
                        .requested = message.requested(),
                        .largest_now = message.largest_now(),
                        .free = message.free()};
  if (message.has_heap_index()) refusal.heap_index = message.heap_index();
  return refusal;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/plan_requests.h"

#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

absl::Status CheckNonConstant(const std::vector<ArenaPlan>& non_constant) {
  std::set<absl::string_view> names;
  for (size_t id = 0; id < non_constant.size(); ++id) {
    const ArenaPlan& memory = non_constant[id];
    if (memory.size == Bytes(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "MemoryPlan: non_constant[", id, "].size is 0; every memory id needs at least a byte"));
    }
    if (!memory.name.empty() && !names.insert(memory.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("MemoryPlan: non_constant[", id,
                                                     "].name is \"", memory.name,
                                                     "\", as another one's; use each name once"));
    }
  }
  return absl::OkStatus();
}

AllocationRequest RequestOf(const ArenaPlan& arena, MemoryKind kind) {
  return {.size = arena.size,
          .alignment = kMaxBlockAlignment,
          .memory = arena.memory.value_or(kind),
          .device_address = arena.device_address,
          .zeroed = arena.zeroed};
}

}  // namespace

absl::Status CheckPlan(const MemoryPlan& plan) {
  if (plan.constant.name.empty() != (plan.constant.size == Bytes(0))) {
    return absl::InvalidArgumentError(
        "MemoryPlan: constant.name and constant.size must both be set, or neither");
  }
  if (plan.options.request_id != 0) {
    return absl::InvalidArgumentError(
        "MemoryPlan: options.request_id must be 0; a plan that fails keeps nothing, so there is "
        "nothing to repeat");
  }
  return CheckNonConstant(plan.non_constant);
}

std::vector<AllocationRequest> LeasesOf(const MemoryPlan& plan) {
  std::vector<AllocationRequest> requests;
  for (const ArenaPlan& arena : plan.non_constant) {
    requests.push_back(RequestOf(arena, MemoryKind::kDeviceLocal));
  }
  if (plan.runtime.size > Bytes(0)) {
    requests.push_back(RequestOf(plan.runtime, MemoryKind::kHostVisible));
  }
  if (plan.kernel_temporary.size > Bytes(0)) {
    requests.push_back(RequestOf(plan.kernel_temporary, MemoryKind::kDeviceLocal));
  }
  return requests;
}

AllocationRequest FurtherLeaseOf(const MemoryPlan& plan) {
  AllocationRequest request = RequestOf(plan.kernel_temporary, MemoryKind::kDeviceLocal);
  request.transient = true;
  return request;
}

AllocateOptions FurtherOptionsOf(const MemoryPlan& plan) {
  AllocateOptions options = plan.options;
  // For making the plan only: it has been there, and each is for one call.
  options.cancellation = nullptr;
  return options;
}

SegmentOptions SegmentOf(const MemoryPlan& plan) {
  return {.name = plan.constant.name,
          .size = plan.constant.size,
          .memory = plan.constant.memory,
          .device_index = plan.options.device_index,
          .timeout = plan.constant.timeout,
          .max_wait = plan.options.max_wait,
          .cancellation = plan.options.cancellation};
}

}  // namespace heapbroker

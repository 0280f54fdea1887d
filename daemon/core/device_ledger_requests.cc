// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of DeviceLedger that reads requests: what they ask for, whether it is
// allowed, and what becomes of those that are repeated or undone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/core/device_ledger.h"

namespace heapbroker {

absl::Status DeviceLedger::CheckRequest(size_t index, const BlockRequest& request) const {
  if (request.size == Bytes() || request.size > device_.max_allocation_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("blocks[", index, "].size: is ", request.size.count(), "; allowed are 1 to ",
                     device_.max_allocation_size.count(), " bytes, the device's largest block"));
  }
  const uint64_t alignment = request.alignment.count();
  if (alignment != 0 && (!IsPowerOfTwo(alignment) || request.alignment > kMaxAlignment)) {
    return absl::InvalidArgumentError(absl::StrCat("blocks[", index, "].alignment: is ", alignment,
                                                   "; allowed are 0 and powers of two up to ",
                                                   kMaxAlignment.count()));
  }
  if (request.device_address && !device_.device_addresses) {
    return absl::FailedPreconditionError(absl::StrCat("blocks[", index, "].device_address: device ",
                                                      device_.index, " (", device_.name,
                                                      ") has no bufferDeviceAddress; ask without"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Want> DeviceLedger::WantOf(size_t index, const BlockRequest& request) const {
  HB_RETURN_IF_ERROR(CheckRequest(index, request));
  Want want;
  auto placement = placements_.Find(request.memory, request.handle_type, request.transient);
  if (!placement.ok()) {
    return absl::Status(placement.status().code(),
                        absl::StrCat("blocks[", index, "].", placement.status().message()));
  }
  want.placement = *std::move(placement);
  want.size = request.size;
  want.alignment = request.alignment;
  want.device_address = request.device_address;
  want.dedicated = request.dedicated || device_.dedicated_only.has(want.placement->handle_type);
  want.zeroed = request.zeroed;
  return want;
}

absl::StatusOr<Order> DeviceLedger::LeaseOrder(SessionId session, CallId call,
                                               const AllocateRequest& request) {
  HB_ASSIGN_OR_RETURN(const TenantId tenant, TenantOf(session));
  HB_RETURN_IF_ERROR(CheckBlockCount("blocks", request.blocks.size()));
  Order order{OrderId(++last_order_),
              call,
              session,
              tenant,
              std::nullopt,
              request.request_id,
              request.priority,
              request.wait_until,
              {}};
  for (size_t i = 0; i < request.blocks.size(); ++i) {
    HB_ASSIGN_OR_RETURN(Want want, WantOf(i, request.blocks[i]));
    order.wants.push_back(std::move(want));
  }
  return order;
}

absl::StatusOr<std::optional<std::variant<Grant, Deferred>>> DeviceLedger::Repeat(
    SessionId session, CallId call, const AllocateRequest& request, Effects& effects) {
  HB_ASSIGN_OR_RETURN(std::optional<RequestIds::Found> found, request_ids_.Find(session, request));
  if (!found) return std::nullopt;
  if (auto* grant = std::get_if<Grant>(&*found)) return std::variant<Grant, Deferred>(*grant);
  // Whoever repeats a request does not listen for the first answer any more.
  const CallId earlier = std::get<RequestIds::Pending>(*found).call;
  admission_.Rename(session, earlier, call);
  request_ids_.Wait(session, request, call);
  const Deferred deferred = Defer(session);
  Answer(session,
         AllocateDone{earlier, absl::AbortedError("the request was repeated by another call, which "
                                                  "gets its answer")},
         effects);
  return std::variant<Grant, Deferred>(deferred);
}

absl::Status DeviceLedger::Undo(SessionId session, RequestId request, Effects& effects) {
  HB_RETURN_IF_ERROR(TenantOf(session).status());
  HB_ASSIGN_OR_RETURN(const RequestIds::ToUndo undo, request_ids_.Undo(session, request));
  if (undo.call) {
    // One that the device is at work for ends later, and holds nothing then; it must
    // not be repeated.
    undone_.insert(*undo.call);
    request_ids_.Failed(session, request);
    Cancel(session, *undo.call, effects);
    return absl::OkStatus();
  }
  GiveBackAll(session, undo.blocks, effects);
  return absl::OkStatus();
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_ledger.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/core/memory_type_choice.h"

namespace heapbroker {
namespace {

GrantedBlock Granted(const LeasedBlock& leased) {
  return {leased.block.id, leased.size, leased.block.bytes(), leased.block.block_class};
}

absl::Status CheckCount(absl::string_view field, size_t count) {
  if (count >= 1 && count <= kMaxBlocksPerCall) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": has ", count, " entries; allowed are 1 to ", kMaxBlocksPerCall));
}

}  // namespace

DeviceLedger::DeviceLedger(const DeviceInfo& device, const LedgerOptions& options)
    : device_(device),
      tenants_(options.tenants),
      admission_(device, options.admission, leases_, segments_) {}

absl::Status DeviceLedger::AddSession(SessionId session, TenantId tenant) {
  if (tenants_ == TenantRule::kFirstTenantOnly) {
    if (!first_tenant_) first_tenant_ = tenant;
    if (*first_tenant_ != tenant) {
      return absl::PermissionDeniedError(absl::StrCat(
          "device ", device_.index, " (", device_.name,
          ") is a software device, which is no boundary between tenants; it serves uid ",
          first_tenant_->uid(), " until the daemon is restarted, and this is uid ", tenant.uid(),
          "; --software-tenants=any allows more, for tenants that trust each other"));
    }
  }
  leases_.AddHolder(session, tenant);
  return absl::OkStatus();
}

void DeviceLedger::EndSession(SessionId session, Effects& effects) {
  // Its work on the device may still be running: none of it may be kept.
  for (LeasedBlock& leased : leases_.RemoveHolder(session)) {
    admission_.Discard(std::move(leased), NotKeptReason::kUncleanEnd, effects);
  }
  // Before its orders end, so that none of its own waiting calls is elected.
  Segments::SessionEnd end = segments_.EndSession(session);
  TellAll(admission_.Cancel(session, std::nullopt), effects);
  for (SegmentWaiter& waiter : end.cancelled) {
    Answer(session, OpenSegmentDone{waiter.call, absl::CancelledError("the session has ended")},
           effects);
  }
  for (Segments::Abandoned& abandoned : end.abandoned) {
    Free(std::move(abandoned), NotKeptReason::kUncleanEnd, effects);
  }
  TellAll(admission_.Pump(effects), effects);
}

absl::StatusOr<std::variant<Grant, Deferred>> DeviceLedger::Allocate(
    SessionId session, CallId call, absl::Span<const BlockRequest> requests, Effects& effects) {
  HB_ASSIGN_OR_RETURN(Order order, LeaseOrder(session, call, requests));
  HB_RETURN_IF_ERROR(CheckMayWait(session));
  std::optional<Admission::Finished> finished = admission_.Submit(std::move(order), effects);
  if (!finished) return Defer(session);
  HB_ASSIGN_OR_RETURN(Grant grant, Lease(*std::move(finished), effects));
  return grant;
}

absl::Status DeviceLedger::Release(SessionId session, absl::Span<const BlockId> blocks,
                                   Effects& effects) {
  HB_RETURN_IF_ERROR(CheckCount("block_ids", blocks.size()));
  std::set<BlockId> distinct;
  for (BlockId id : blocks) {
    if (!distinct.insert(id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("block_ids: block ", id.value(), " is named twice"));
    }
    if (leases_.Find(session, id) == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("block_ids: this session holds no block ", id.value()));
    }
  }
  for (BlockId id : blocks) admission_.GiveBack(leases_.Take(session, id), effects);
  TellAll(admission_.Pump(effects), effects);
  return absl::OkStatus();
}

absl::StatusOr<FetchedBlock> DeviceLedger::Fetch(SessionId session, BlockId id) const {
  if (const LeasedBlock* leased = leases_.Find(session, id)) {
    return FetchedBlock{id, leased->block.memory.exported};
  }
  if (const Block* block = segments_.FindBlock(session, id)) {
    return FetchedBlock{id, block->memory.exported};
  }
  return absl::NotFoundError(absl::StrCat("block_id: this session holds no block ", id.value()));
}

void DeviceLedger::EndFill(OrderId order, std::vector<DeviceAllocation> made, absl::Status status,
                           Effects& effects) {
  std::optional<Admission::Finished> finished =
      admission_.EndFill(order, std::move(made), std::move(status), effects);
  if (finished) Tell(*std::move(finished), effects);
  TellAll(admission_.Pump(effects), effects);
}

void DeviceLedger::Freed(const Block& block, Effects& effects) {
  admission_.Freed(block);
  TellAll(admission_.Pump(effects), effects);
}

void DeviceLedger::Cancel(SessionId session, CallId call, Effects& effects) {
  TellAll(admission_.Cancel(session, call), effects);
  if (std::optional<SegmentWaiter> waiter = segments_.CancelWait(session, call)) {
    Answer(session,
           OpenSegmentDone{call, absl::CancelledError("nobody waits for this call any more")},
           effects);
  }
  TellAll(admission_.Pump(effects), effects);
}

DeviceStats DeviceLedger::Stats() const {
  DeviceStats stats;
  stats.device = device_;
  admission_.AddStats(stats);
  stats.segments = segments_.totals().count;
  stats.segment_bytes = segments_.totals().allocated;
  return stats;
}

HolderStats DeviceLedger::Holdings(SessionId session) const {
  HolderStats stats = leases_.Holdings(session);
  stats.attached_segments = segments_.AttachmentsOf(session);
  return stats;
}

absl::StatusOr<TenantId> DeviceLedger::TenantOf(SessionId session) const {
  if (const std::optional<TenantId> tenant = leases_.TenantOf(session)) return *tenant;
  return absl::UnauthenticatedError("the session has ended");
}

absl::Status DeviceLedger::CheckMayWait(SessionId session) const {
  const auto found = deferred_.find(session);
  if (found == deferred_.end() || found->second < kMaxDeferredCalls) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this session has ", found->second, " calls that wait, of ", kMaxDeferredCalls,
                   " that it may have; wait for some of them to end, or cancel them"));
}

Deferred DeviceLedger::Defer(SessionId session) {
  ++deferred_[session];
  return Deferred{};
}

void DeviceLedger::Answer(SessionId session, Event event, Effects& effects) {
  const auto found = deferred_.find(session);
  if (--found->second == 0) deferred_.erase(found);
  effects.events.emplace_back(session, std::move(event));
}

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
  return absl::OkStatus();
}

absl::StatusOr<Order> DeviceLedger::LeaseOrder(SessionId session, CallId call,
                                               absl::Span<const BlockRequest> requests) {
  HB_ASSIGN_OR_RETURN(const TenantId tenant, TenantOf(session));
  HB_RETURN_IF_ERROR(CheckCount("blocks", requests.size()));
  Order order{OrderId(++last_order_), call, session, tenant, std::nullopt, {}};
  for (size_t i = 0; i < requests.size(); ++i) {
    HB_RETURN_IF_ERROR(CheckRequest(i, requests[i]));
    HB_ASSIGN_OR_RETURN(const uint32_t type,
                        ChooseMemoryType(device_, std::get<MemoryKind>(requests[i].memory)));
    order.wants.push_back({requests[i].size, requests[i].alignment, type, requests[i].zeroed,
                           /*fresh=*/false});
  }
  return order;
}

absl::StatusOr<Grant> DeviceLedger::Lease(Admission::Finished finished, Effects& effects) {
  HB_RETURN_IF_ERROR(finished.blocks.status());
  Grant grant;
  const SessionId session = finished.order.session;
  if (!leases_.TenantOf(session)) {
    for (LeasedBlock& leased : *finished.blocks) admission_.GiveBack(std::move(leased), effects);
    return absl::CancelledError("the session has ended");
  }
  for (LeasedBlock& leased : *finished.blocks) {
    grant.blocks.push_back(Granted(leased));
    leases_.Add(session, std::move(leased));
  }
  return grant;
}

void DeviceLedger::Tell(Admission::Finished finished, Effects& effects) {
  const SessionId session = finished.order.session;
  const CallId call = finished.order.call;
  if (finished.order.segment) {
    absl::StatusOr<SegmentView> view = FillSegment(std::move(finished), effects);
    Answer(session, OpenSegmentDone{call, std::move(view)}, effects);
  } else {
    absl::StatusOr<Grant> grant = Lease(std::move(finished), effects);
    Answer(session, AllocateDone{call, std::move(grant)}, effects);
  }
}

void DeviceLedger::TellAll(std::vector<Admission::Finished> all, Effects& effects) {
  for (Admission::Finished& finished : all) Tell(std::move(finished), effects);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_ledger.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

GrantedBlock Granted(const LeasedBlock& leased) {
  return {leased.block.id, leased.size, leased.block.bytes(), leased.block.block_class};
}

// Without any configured, one for each memory type.
std::vector<ResolvedPool> PoolsOf(const DeviceInfo& device, const AdmissionOptions& options) {
  if (!options.pools.empty()) return options.pools;
  PoolSpec every_type;
  every_type.text = "*";
  every_type.every_type = true;
  return ResolvePools({every_type}, device).pools;
}

}  // namespace

DeviceLedger::DeviceLedger(const DeviceInfo& device, const LedgerOptions& options,
                           const Clock& clock)
    : DeviceLedger(device, options, PoolsOf(device, options.admission), clock) {}

DeviceLedger::DeviceLedger(const DeviceInfo& device, const LedgerOptions& options,
                           const std::vector<ResolvedPool>& pools, const Clock& clock)
    : device_(device),
      clock_(clock),
      tenants_(options.tenants),
      segments_(device.index),
      caches_(device.heaps.size()),
      room_(device, options.admission.heaps, options.admission.count_limits, pools, leases_,
            segments_),
      admission_(device, options.admission, room_, caches_, clock),
      placements_(device, pools) {}

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
  const std::optional<TenantId> tenant = leases_.TenantOf(session);
  // Its work on the device may still be running: none of it may be kept.
  for (LeasedBlock& leased : leases_.RemoveHolder(session)) {
    room_.Discard(std::move(leased), NotKeptReason::kUncleanEnd, effects);
  }
  caches_.Forget(session);
  // Before its orders end, so that none of its own waiting calls is elected.
  Segments::SessionEnd end = segments_.EndSession(session);
  // All of them before anyone else asks for memory.
  for (Segments::Abandoned& abandoned : end.abandoned) {
    FreeBlocks(abandoned, NotKeptReason::kUncleanEnd, effects);
  }
  TellAll(admission_.Cancel(session, std::nullopt, effects), effects);
  request_ids_.EndSession(session);
  for (SegmentWaiter& waiter : end.cancelled) {
    Answer(session, OpenSegmentDone{waiter.call, absl::CancelledError("the session has ended")},
           effects);
  }
  for (Segments::Abandoned& abandoned : end.abandoned) {
    Succeed(std::move(abandoned), effects);
  }
  TellAll(admission_.Pump(tenant, effects), effects);
  if (tenant) effects.events.emplace_back(session, SessionGone{});
}

absl::StatusOr<std::variant<Grant, Deferred>> DeviceLedger::Allocate(SessionId session, CallId call,
                                                                     const AllocateRequest& request,
                                                                     Effects& effects) {
  HB_ASSIGN_OR_RETURN(Order order, LeaseOrder(session, call, request));
  HB_ASSIGN_OR_RETURN(auto repeated, Repeat(session, call, request, effects));
  if (repeated) return *std::move(repeated);
  // A repeated one waits in the place of the one before it.
  HB_RETURN_IF_ERROR(CheckMayWait(session));
  request_ids_.Wait(session, request, call);
  std::optional<Admission::Finished> finished = admission_.Submit(std::move(order), effects);
  if (!finished) return Defer(session);
  HB_ASSIGN_OR_RETURN(Grant grant, Lease(*std::move(finished), effects));
  return grant;
}

absl::Status DeviceLedger::Release(SessionId session, absl::Span<const BlockId> blocks,
                                   Effects& effects) {
  HB_RETURN_IF_ERROR(CheckCount("block_ids", blocks.size()));
  for (size_t i = 0; i < blocks.size(); ++i) {
    // Few enough to compare each with each.
    if (std::find(blocks.begin(), blocks.begin() + i, blocks[i]) != blocks.begin() + i) {
      return absl::InvalidArgumentError(
          absl::StrCat("block_ids: block ", blocks[i].value(), " is named twice"));
    }
    if (leases_.Find(session, blocks[i]) == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("block_ids: this session holds no block ", blocks[i].value()));
    }
  }
  GiveBackAll(session, blocks, effects);
  return absl::OkStatus();
}

void DeviceLedger::GiveBackAll(SessionId session, absl::Span<const BlockId> blocks,
                               Effects& effects) {
  const absl::Time now = clock_.Now();
  for (BlockId id : blocks) {
    LeasedBlock leased = leases_.Take(session, id);
    request_ids_.Released(session, leased.request, id);
    room_.GiveBack(std::move(leased), now, effects);
  }
  CapCache(session);
  TellAll(admission_.Pump(leases_.TenantOf(session), effects), effects);
}

void DeviceLedger::CapCache(SessionId session) {
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) {
    if (caches_.on(heap) == Bytes()) continue;
    caches_.Cap(session, heap, HeldOn(session, heap));
  }
}

Bytes DeviceLedger::HeldOn(SessionId session, uint32_t heap) const {
  Bytes held;
  for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
    if (device_.memory_types[type].heap == heap) held += leases_.HeldOf(session, type);
  }
  return held;
}

absl::Status DeviceLedger::ReportIdle(SessionId session, absl::Span<const IdleReport> reports,
                                      Effects& effects) {
  HB_RETURN_IF_ERROR(TenantOf(session).status());
  std::vector<IdleReport> believed(reports.begin(), reports.end());
  std::set<uint32_t> heaps;
  for (IdleReport& report : believed) {
    if (report.heap >= device_.heaps.size()) {
      return absl::InvalidArgumentError(absl::StrCat("heap_index: is ", report.heap, "; device ",
                                                     device_.index, " has ", device_.heaps.size(),
                                                     " heaps, counted from 0"));
    }
    if (!heaps.insert(report.heap).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("heap_index: heap ", report.heap, " is named twice"));
    }
    report.bytes = std::min(report.bytes, HeldOn(session, report.heap));
  }
  caches_.Report(session, believed);
  // Whoever waits may have it asked for.
  TellAll(admission_.Pump(std::nullopt, effects), effects);
  return absl::OkStatus();
}

absl::StatusOr<TrimResult> DeviceLedger::Trim(const TrimRequest& request, Effects& effects) {
  HB_ASSIGN_OR_RETURN(const TrimResult result, room_.Trim(request, effects));
  TellAll(admission_.Pump(std::nullopt, effects), effects);
  return result;
}

void DeviceLedger::UpdateHeaps(absl::Span<const HeapReport> reports, Effects& effects) {
  room_.UpdateHeaps(reports, effects);
  TellAll(admission_.Pump(std::nullopt, effects), effects);
}

void DeviceLedger::EvictEverything(Effects& effects) {
  // Cannot fail: no pool is named.
  room_.Trim({std::nullopt, Bytes(), /*segments=*/true}, effects).IgnoreError();
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

void DeviceLedger::EndFill(OrderId order, Filled filled, Effects& effects) {
  std::optional<Admission::Finished> finished =
      admission_.EndFill(order, std::move(filled), effects);
  std::optional<TenantId> tenant;  // What it did not get after all may be idle now.
  if (finished) {
    tenant = finished->order.tenant;
    Tell(*std::move(finished), effects);
  }
  TellAll(admission_.Pump(tenant, effects), effects);
}

void DeviceLedger::Freed(const Block& block, Effects& effects) {
  room_.Freed(block);
  TellAll(admission_.Pump(std::nullopt, effects), effects);
}

void DeviceLedger::Cancel(SessionId session, CallId call, Effects& effects) {
  TellAll(admission_.Cancel(session, call, effects), effects);
  if (std::optional<SegmentWaiter> waiter = segments_.CancelWait(session, call)) {
    Answer(session,
           OpenSegmentDone{call, absl::CancelledError("nobody waits for this call any more")},
           effects);
  }
  TellAll(admission_.Pump(leases_.TenantOf(session), effects), effects);
}

DeviceStats DeviceLedger::Stats() const {
  DeviceStats stats;
  stats.device = device_;
  room_.AddStats(stats);
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

std::vector<LeaseStats> DeviceLedger::ListLeases(BlockId after, size_t limit) const {
  std::vector<LeaseStats> list;
  leases_.List(after, limit, [&](SessionId session, TenantId tenant, const LeasedBlock& leased) {
    const Block& block = leased.block;
    list.push_back({block.id, session, tenant, block.block_class, leased.size, block.bytes(),
                    room_.pools().pool(block.pool).config().name, leased.since});
  });
  return list;
}

absl::StatusOr<TenantId> DeviceLedger::TenantOf(SessionId session) const {
  if (const std::optional<TenantId> tenant = leases_.TenantOf(session)) return *tenant;
  return absl::UnauthenticatedError("the session has ended");
}

absl::Status DeviceLedger::CheckMayWait(SessionId session) const {
  const auto found = deferred_.find(session);
  if (found == deferred_.end() || found->second < kMaxDeferredCalls) return absl::OkStatus();
  Refusal refusal;
  refusal.limit = LimitKind::kWaitingCalls;
  refusal.value = refusal.in_use = kMaxDeferredCalls;
  refusal.requested = 1;
  return RefusalStatus(refusal);
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

absl::StatusOr<Grant> DeviceLedger::Lease(Admission::Finished finished, Effects& effects) {
  const SessionId session = finished.order.session;
  const bool undone = undone_.erase(finished.order.call) > 0;
  if (!finished.blocks.ok()) {
    // The id of one that was undone may stand for another request by now.
    if (!undone) request_ids_.Failed(session, finished.order.request);
    return finished.blocks.status();
  }
  const bool ended = !leases_.TenantOf(session);
  if (undone || ended) {
    for (LeasedBlock& leased : *finished.blocks) {
      room_.GiveBack(std::move(leased), clock_.Now(), effects);
    }
    return absl::CancelledError(ended ? "the session has ended" : "the request was undone");
  }
  Grant grant;
  grant.blocks.reserve(finished.blocks->size());
  for (LeasedBlock& leased : *finished.blocks) {
    grant.blocks.push_back(Granted(leased));
    leases_.Add(session, std::move(leased));
  }
  request_ids_.Granted(session, finished.order.request, grant);
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

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of DeviceLedger that joins segments to memory.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/core/device_ledger.h"

namespace heapbroker {
namespace {

// A segment's blocks but the last are multiples of this, so that offsets that are
// aligned in the segment are aligned in its blocks, too.
constexpr Bytes kSegmentBlockUnit = MiB(2);

}  // namespace

absl::StatusOr<std::variant<SegmentView, Deferred>> DeviceLedger::OpenSegment(
    SessionId session, CallId call, OpenSegmentRequest request, Effects& effects) {
  HB_ASSIGN_OR_RETURN(const TenantId tenant, TenantOf(session));
  SegmentWaiter opener{session, call, std::move(request)};
  if (opener.request.mode == OpenMode::kCreateOrAttach) {
    HB_ASSIGN_OR_RETURN(opener.placement,
                        placements_.Find(opener.request.memory, opener.request.handle_type,
                                         /*transient=*/false));
    // What could never be made is refused before it disturbs those who wait.
    HB_RETURN_IF_ERROR(SegmentOrder(opener, tenant, SegmentId()).status());
  }
  HB_RETURN_IF_ERROR(CheckMayWait(session));
  HB_ASSIGN_OR_RETURN(Segments::OpenResult opened, segments_.Open(tenant, opener));
  if (auto* view = std::get_if<SegmentView>(&opened)) return std::move(*view);
  if (std::holds_alternative<Segments::Wait>(opened)) return Defer(session);

  HB_ASSIGN_OR_RETURN(Order order,
                      SegmentOrder(opener, tenant, std::get<Segments::Become>(opened).segment));
  std::optional<Admission::Finished> finished = admission_.Submit(std::move(order), effects);
  if (!finished) return Defer(session);
  HB_ASSIGN_OR_RETURN(SegmentView view, FillSegment(*std::move(finished), effects));
  return view;
}

absl::Status DeviceLedger::SealSegment(SessionId session, SegmentId segment, Checksum checksum,
                                       Effects& effects) {
  HB_ASSIGN_OR_RETURN(std::vector<Segments::Attached> attached,
                      segments_.Seal(session, segment, checksum));
  for (Segments::Attached& one : attached) {
    Answer(one.waiter.session, OpenSegmentDone{one.waiter.call, std::move(one.view)}, effects);
  }
  const std::string& name = segments_.NameOf(segment);
  for (SessionId holder : leases_.HoldersOf(*leases_.TenantOf(session))) {
    effects.events.emplace_back(holder, SegmentSealed{device_.index, segment, name});
  }
  return absl::OkStatus();
}

absl::Status DeviceLedger::CloseSegment(SessionId session, SegmentId segment, Effects& effects) {
  HB_ASSIGN_OR_RETURN(Segments::Abandoned abandoned, segments_.Close(session, segment));
  FreeBlocks(abandoned, NotKeptReason::kNeverCached, effects);
  Succeed(std::move(abandoned), effects);
  TellAll(admission_.Pump(std::nullopt, effects), effects);
  return absl::OkStatus();
}

absl::StatusOr<Order> DeviceLedger::SegmentOrder(const SegmentWaiter& waiter, TenantId tenant,
                                                 SegmentId segment) {
  const Bytes size = waiter.request.size;
  const Bytes unit =
      std::max(Bytes(device_.max_allocation_size.count() & ~(kSegmentBlockUnit.count() - 1)),
               std::min(kSegmentBlockUnit, device_.max_allocation_size));
  if (size == Bytes() || size.count() / unit.count() >= kMaxBlocksPerCall) {
    return absl::InvalidArgumentError(
        absl::StrCat("size: is ", size.count(), "; allowed are 1 byte to ", kMaxBlocksPerCall,
                     " blocks of ", FormatBytes(unit), " for a segment"));
  }
  Want want;
  want.placement = waiter.placement;
  want.dedicated = device_.dedicated_only.has(want.placement->handle_type);
  want.fresh = true;
  Order order{OrderId(++last_order_),
              waiter.call,
              waiter.session,
              tenant,
              segment,
              RequestId(),
              Priority::kNormal,
              waiter.request.wait_until,
              {}};
  for (Bytes left = size; left > Bytes();) {
    const Bytes part = left <= device_.max_allocation_size ? left : unit;
    want.size = part;
    order.wants.push_back(want);
    left -= part;
  }
  return order;
}

absl::StatusOr<SegmentView> DeviceLedger::FillSegment(Admission::Finished finished,
                                                      Effects& effects) {
  const SegmentId segment = *finished.order.segment;
  absl::Status status = finished.blocks.status();
  if (status.ok() && !leases_.TenantOf(finished.order.session)) {
    for (LeasedBlock& leased : *finished.blocks) {
      room_.Discard(std::move(leased), NotKeptReason::kUncleanEnd, effects);
    }
    status = absl::CancelledError("the session has ended");
  }
  if (status.ok()) return segments_.MemoryArrived(segment, *std::move(finished.blocks));
  Succeed(segments_.MemoryFailed(segment), effects);
  return status;
}

// Finds memory for the next writer. One that there is none for is told so, and
// the one after it tries: it may have asked at a better moment.
void DeviceLedger::Succeed(Segments::Abandoned abandoned, Effects& effects) {
  while (true) {
    for (const SegmentWaiter& waiter : abandoned.not_found) {
      Answer(waiter.session, OpenSegmentDone{waiter.call, Segments::NotFound(waiter.request.name)},
             effects);
    }
    if (!abandoned.successor) return;
    const Segments::Elected& elected = *abandoned.successor;
    absl::StatusOr<Order> order = SegmentOrder(elected.waiter, elected.tenant, elected.segment);
    absl::Status status = order.status();
    if (status.ok()) {
      std::optional<Admission::Finished> finished = admission_.Submit(*std::move(order), effects);
      // Always to be allocated, so that what is finished here was refused.
      if (!finished) return;
      status = finished->blocks.status();
    }
    Answer(elected.waiter.session, OpenSegmentDone{elected.waiter.call, std::move(status)},
           effects);
    abandoned = segments_.MemoryFailed(elected.segment);
  }
}

void DeviceLedger::FreeBlocks(Segments::Abandoned& abandoned, NotKeptReason reason,
                              Effects& effects) {
  for (LeasedBlock& leased : std::exchange(abandoned.blocks, {})) {
    room_.Discard(std::move(leased), reason, effects);
  }
}

}  // namespace heapbroker

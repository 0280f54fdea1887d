// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_broker.h"

#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {

DeviceBroker::DeviceBroker(const LedgerOptions& options, const BrokerPorts& ports)
    : ports_(ports), ledger_(ports.device.info(), options) {}

absl::Status DeviceBroker::AddSession(SessionId session, TenantId tenant) {
  MutexLock lock(mutex_);
  return ledger_.AddSession(session, tenant);
}

void DeviceBroker::EndSession(SessionId session) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    ledger_.EndSession(session, effects);
  }
  Perform(std::move(effects));
}

absl::StatusOr<std::variant<Grant, Deferred>> DeviceBroker::Allocate(
    SessionId session, CallId call, const AllocateRequest& request) {
  Effects effects;
  absl::StatusOr<std::variant<Grant, Deferred>> outcome = Deferred{};
  {
    MutexLock lock(mutex_);
    outcome = ledger_.Allocate(session, call, request.blocks, effects);
  }
  Perform(std::move(effects));
  return outcome;
}

absl::Status DeviceBroker::Release(SessionId session, absl::Span<const BlockId> blocks) {
  Effects effects;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = ledger_.Release(session, blocks, effects);
  }
  Perform(std::move(effects));
  return status;
}

absl::Status DeviceBroker::Undo(SessionId, RequestId) { return absl::UnimplementedError(""); }
absl::Status DeviceBroker::ReportIdle(SessionId, absl::Span<const IdleReport>) {
  return absl::OkStatus();
}
absl::StatusOr<TrimResult> DeviceBroker::Trim(const TrimRequest&) {
  return absl::UnimplementedError("");
}
void DeviceBroker::Tick() {}
std::vector<LeaseStats> DeviceBroker::ListLeases(BlockId, size_t) const { return {}; }

absl::StatusOr<FetchedBlock> DeviceBroker::Fetch(SessionId session, BlockId block) {
  MutexLock lock(mutex_);
  return ledger_.Fetch(session, block);
}

absl::StatusOr<std::variant<SegmentView, Deferred>> DeviceBroker::OpenSegment(
    SessionId session, CallId call, OpenSegmentRequest request) {
  Effects effects;
  absl::StatusOr<std::variant<SegmentView, Deferred>> outcome = Deferred{};
  {
    MutexLock lock(mutex_);
    outcome = ledger_.OpenSegment(session, call, std::move(request), effects);
  }
  Perform(std::move(effects));
  return outcome;
}

absl::Status DeviceBroker::SealSegment(SessionId session, SegmentId segment, Checksum checksum) {
  Effects effects;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = ledger_.SealSegment(session, segment, checksum, effects);
  }
  Perform(std::move(effects));
  return status;
}

absl::Status DeviceBroker::CloseSegment(SessionId session, SegmentId segment) {
  Effects effects;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = ledger_.CloseSegment(session, segment, effects);
  }
  Perform(std::move(effects));
  return status;
}

void DeviceBroker::Cancel(SessionId session, CallId call) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    ledger_.Cancel(session, call, effects);
  }
  Perform(std::move(effects));
}

void DeviceBroker::EvictEverything() {
  Effects effects;
  {
    MutexLock lock(mutex_);
    ledger_.EvictEverything(effects);
  }
  Perform(std::move(effects));
}

DeviceStats DeviceBroker::Stats() const {
  MutexLock lock(mutex_);
  return ledger_.Stats();
}

std::vector<SegmentStats> DeviceBroker::ListSegments() const {
  MutexLock lock(mutex_);
  return ledger_.ListSegments();
}

HolderStats DeviceBroker::Holdings(SessionId session) const {
  MutexLock lock(mutex_);
  return ledger_.Holdings(session);
}

void DeviceBroker::Perform(Effects effects) {
  for (Block& block : effects.free) {
    ports_.executor.PostFree(
        [this, block = std::move(block)]() mutable { FreeOne(std::move(block)); });
  }
  for (FillOrder& order : effects.fill) {
    ports_.executor.PostAllocation(
        [this, order = std::move(order)]() mutable { Fill(std::move(order)); });
  }
  for (auto& [session, event] : effects.events) ports_.events.Deliver(session, std::move(event));
}

void DeviceBroker::Fill(FillOrder order) {
  std::vector<DeviceAllocation> made;
  absl::Status status;
  for (size_t i = 0; i < order.items.size() && status.ok(); ++i) {
    absl::StatusOr<DeviceAllocation> one = MakeOne(order.id, i, order.items[i]);
    if (one.ok()) {
      made.push_back(*std::move(one));
    } else {
      status = one.status();
    }
  }
  Effects effects;
  {
    MutexLock lock(mutex_);
    ledger_.EndFill(order.id, std::move(made), std::move(status), effects);
  }
  Perform(std::move(effects));
}

absl::StatusOr<DeviceAllocation> DeviceBroker::MakeOne(OrderId order, size_t index,
                                                       const FillItem& item) {
  if (item.reuse) {
    HB_RETURN_IF_ERROR(ports_.device.Clear(item.block_class, *item.reuse));
    return *item.reuse;
  }
  absl::StatusOr<DeviceAllocation> made = MakeSized(order, index, item, item.planned);
  if (absl::IsResourceExhausted(made.status()) && item.exact < item.planned) {
    // Rounding up is our wish, not the caller's: it may not be why he is refused.
    made = MakeSized(order, index, item, item.exact);
  }
  return made;
}

absl::StatusOr<DeviceAllocation> DeviceBroker::MakeSized(OrderId order, size_t index,
                                                         const FillItem& item, Bytes size) {
  HB_ASSIGN_OR_RETURN(const Bytes required, ports_.device.RequiredSize(item.block_class, size));
  {
    MutexLock lock(mutex_);
    HB_RETURN_IF_ERROR(ledger_.AdjustReservation(order, index, required));
  }
  return ports_.device.Allocate(item.block_class, required);
}

void DeviceBroker::FreeOne(Block block) {
  // The descriptor first: what it refers to is gone after the next line.
  block.memory.exported.reset();
  ports_.device.Free(block.memory.id);
  Effects effects;
  {
    MutexLock lock(mutex_);
    ledger_.Freed(block, effects);
  }
  Perform(std::move(effects));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Everything that is booked for one device.
#ifndef DAEMON_CORE_DEVICE_LEDGER_H_
#define DAEMON_CORE_DEVICE_LEDGER_H_

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "daemon/core/admission.h"
#include "daemon/core/client_caches.h"
#include "daemon/core/device_info.h"
#include "daemon/core/device_room.h"
#include "daemon/core/effects.h"
#include "daemon/core/leases.h"
#include "daemon/core/placement.h"
#include "daemon/core/request_ids.h"
#include "daemon/core/requests.h"
#include "daemon/core/segments.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// How many tenants a device serves. A software driver keeps its bookkeeping
// inside the shared memory, so that any client can crash the daemon: no boundary
// between those who do not trust each other.
enum class TenantRule { kFirstTenantOnly, kAnyTenant };

struct LedgerOptions {
  AdmissionOptions admission;
  TenantRule tenants = TenantRule::kAnyTenant;
};

// Joins leases, segments and admission: what each call of a session means for
// all three. Its methods are those of DeviceBroker, which documents them; what
// has to follow is added to `effects`.
//
// Bookkeeping only: makes no call to the device and takes no lock. DeviceBroker's
// mutex guards it, so that one snapshot of all of it agrees.
class DeviceLedger {
 public:
  // `device` and `clock` must outlive this.
  DeviceLedger(const DeviceInfo& device, const LedgerOptions& options, const Clock& clock);
  DeviceLedger(const DeviceLedger&) = delete;
  DeviceLedger& operator=(const DeviceLedger&) = delete;

  absl::Status AddSession(SessionId session, TenantId tenant);
  void EndSession(SessionId session, Effects& effects);

  absl::StatusOr<std::variant<Grant, Deferred>> Allocate(SessionId session, CallId call,
                                                         const AllocateRequest& request,
                                                         Effects& effects);
  absl::Status Release(SessionId session, absl::Span<const BlockId> blocks, Effects& effects);
  absl::Status Undo(SessionId session, RequestId request, Effects& effects);
  absl::StatusOr<FetchedBlock> Fetch(SessionId session, BlockId block) const;

  absl::StatusOr<std::variant<SegmentView, Deferred>> OpenSegment(SessionId session, CallId call,
                                                                  OpenSegmentRequest request,
                                                                  Effects& effects);
  absl::Status SealSegment(SessionId session, SegmentId segment, Checksum checksum,
                           Effects& effects);
  absl::Status CloseSegment(SessionId session, SegmentId segment, Effects& effects);
  void Cancel(SessionId session, CallId call, Effects& effects);

  absl::Status ReportIdle(SessionId session, absl::Span<const IdleReport> reports,
                          Effects& effects);
  absl::StatusOr<TrimResult> Trim(const TrimRequest& request, Effects& effects);
  void Tick(Effects& effects) { TellAll(admission_.Tick(effects), effects); }
  absl::Time NextDue() const { return admission_.NextDue(); }

  // What the device reports back; see Admission.
  absl::Status AdjustReservation(OrderId order, size_t item, const BufferNeeds& needs,
                                 Effects& effects) {
    return admission_.AdjustReservation(order, item, needs, effects);
  }
  void EndFill(OrderId order, Filled filled, Effects& effects);
  void Freed(const Block& block, Effects& effects);
  void UpdateHeaps(absl::Span<const HeapReport> reports, Effects& effects);
  void EvictEverything(Effects& effects);

  DeviceStats Stats() const;
  std::vector<SegmentStats> ListSegments() const { return segments_.List(); }
  HolderStats Holdings(SessionId session) const;
  std::vector<LeaseStats> ListLeases(BlockId after, size_t limit) const;

 private:
  DeviceLedger(const DeviceInfo& device, const LedgerOptions& options,
               const std::vector<ResolvedPool>& pools, const Clock& clock);

  absl::StatusOr<TenantId> TenantOf(SessionId session) const;
  // What the session leases on a heap.
  Bytes HeldOn(SessionId session, uint32_t heap) const;
  // Every answer that comes later is counted from here until it is given.
  absl::Status CheckMayWait(SessionId session) const;
  Deferred Defer(SessionId session);
  void Answer(SessionId session, Event event, Effects& effects);
  absl::StatusOr<Order> LeaseOrder(SessionId session, CallId call, const AllocateRequest& request);
  absl::StatusOr<Want> WantOf(size_t index, const BlockRequest& request) const;
  // Answers a repeated request; unset where it is a new one.
  absl::StatusOr<std::optional<std::variant<Grant, Deferred>>> Repeat(
      SessionId session, CallId call, const AllocateRequest& request, Effects& effects);
  void GiveBackAll(SessionId session, absl::Span<const BlockId> blocks, Effects& effects);
  void CapCache(SessionId session);
  absl::StatusOr<Order> SegmentOrder(const SegmentWaiter& waiter, TenantId tenant,
                                     SegmentId segment);
  static absl::Status CheckCount(absl::string_view field, size_t count);
  absl::Status CheckRequest(size_t index, const BlockRequest& request) const;

  // What becomes of the memory that an order got, or did not get.
  absl::StatusOr<Grant> Lease(Admission::Finished finished, Effects& effects);
  absl::StatusOr<SegmentView> FillSegment(Admission::Finished finished, Effects& effects);
  void Tell(Admission::Finished finished, Effects& effects);
  void TellAll(std::vector<Admission::Finished> finished, Effects& effects);
  void Succeed(Segments::Abandoned abandoned, Effects& effects);
  void FreeBlocks(Segments::Abandoned& abandoned, NotKeptReason reason, Effects& effects);

  const DeviceInfo& device_;
  const Clock& clock_;
  const TenantRule tenants_;
  std::optional<TenantId> first_tenant_;
  Leases leases_;
  Segments segments_;
  ClientCaches caches_;
  DeviceRoom room_;
  Admission admission_;
  const Placements placements_;
  RequestIds request_ids_;
  // Calls whose request was undone while the device was at work for it.
  std::set<CallId> undone_;
  std::map<SessionId, size_t> deferred_;  // Answers that each session is owed; never 0.
  uint64_t last_order_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_LEDGER_H_

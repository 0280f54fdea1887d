// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the core promises, kept as plainly as can be: who holds which memory, and what
// nobody holds. It is told what the core was asked and what it answered, and fails the
// test where that cannot be.
#ifndef TESTS_MODEL_REFERENCE_MODEL_H_
#define TESTS_MODEL_REFERENCE_MODEL_H_

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/core/admission.h"
#include "daemon/core/device_memory.h"
#include "daemon/core/requests.h"
#include "daemon/core/stats.h"
#include "tests/model/idle_model.h"

namespace heapbroker {

// One device. Decides nothing: where the core has a choice (which pool, which idle
// block, who waits), it learns the outcome and checks that it was allowed.
class ReferenceModel {
 public:
  // `options` must name its pools.
  ReferenceModel(DeviceInfo device, AdmissionOptions options);

  // As the device does, when it is asked how much it needs.
  void PadSizes(Bytes granularity, Bytes extra) { granularity_ = granularity, extra_ = extra; }

  // What the device was asked for, as WatchedDevice saw it: how much a buffer needs, and
  // an allocation for the last of those.
  void Sized(Bytes buffer) { sized_ = buffer; }
  void Allocated(const BlockClass& block_class, const DeviceAllocation& allocation);
  void Cleared(DeviceAllocationId id) { memory_.at(id).clean = true; }
  void Freed(DeviceAllocationId id);
  void Refused() { device_refused_ = true; }
  void HeapsRead(absl::Span<const HeapReport> reports);

  void AddSession(SessionId session, TenantId tenant) {
    tenants_.emplace(session, tenant);
    tenants_changed_ = true;
  }
  // Its calls are answered later; all else of it is given back at once.
  void EndSession(SessionId session);

  // Before an operation; `now` is its time.
  void Begin(absl::Time now);

  struct AllocateCall {
    AllocateRequest request;
  };
  struct OpenCall {
    OpenSegmentRequest request;
  };
  // What an order must have at least, and where that may lie.
  struct Need {
    Bytes bytes;   // As asked for, in whole alignments.
    Bytes padded;  // What the device needs for that.
    std::vector<uint32_t> types;
    std::set<uint32_t> heaps;
  };
  struct Call {
    SessionId session;
    TenantId tenant{0};
    std::variant<AllocateCall, OpenCall> what;
    absl::Time asked_at = {};
    bool cancelled = false;
    std::vector<Need> needs = {};  // The model's own.
  };
  // A call, and what became of it at once. What is Deferred waits until its event.
  void Asked(CallId id, Call call);
  void Answered(CallId id, const absl::Status& error, bool at_once);
  // A block of a grant: its memory by its descriptor, its pool by name.
  void Leased(CallId id, size_t index, const GrantedBlock& block, const ExportedHandle* handle,
              const std::string& pool);
  void Granted(CallId id, const Grant& grant, bool at_once);
  void Attached(CallId id, const SegmentView& view,
                const std::vector<const ExportedHandle*>& handles);
  // What a repetition must be answered with; unset where the request is a new one.
  struct Repeated {
    absl::StatusCode code = absl::StatusCode::kOk;
    std::optional<CallId> pending;      // That call ends, this one waits in its place.
    std::vector<BlockId> granted = {};  // Or these blocks come again.
  };
  std::optional<Repeated> Repetition(SessionId session, const AllocateRequest& request) const;
  void Repeats(CallId id, Call call, CallId earlier);

  // Unset where the session has ended.
  std::optional<TenantId> TenantOf(SessionId session) const;
  // What a request must be answered with whatever else is held; OK: see the rest.
  absl::StatusCode InvalidCode(SessionId session, const AllocateRequest& request) const;
  absl::StatusCode ReleaseCode(SessionId session, absl::Span<const BlockId> blocks) const;
  void Released(absl::Span<const BlockId> blocks);
  absl::StatusCode UndoCode(SessionId session, RequestId request) const;
  void Undone(SessionId session, RequestId request);
  void Cancelled(SessionId session, CallId call);
  void Sealed(SegmentId segment) { segments_.at(segment).sealed = true; }
  void Closed(SessionId session, SegmentId segment);
  void ReportedIdle(SessionId session, absl::Span<const IdleReport> reports);
  void Wanted(SessionId session, const GiveBackWanted& wanted);

  // After every operation; the numbers are those of the executor's queues.
  struct Outside {
    size_t fills = 0;     // And what asks the driver, which looks the same from there.
    bool filled = false;  // The first of those has run since Begin.
    size_t frees = 0;
  };
  void Check(const DeviceStats& stats, Outside outside);
  // Where `stats.segment_bytes` is not SegmentBytes(): which are left.
  void Reconcile(const std::vector<SegmentStats>& segments);
  Bytes SegmentBytes() const { return segment_bytes_; }
  // Justifies what was refused since Begin, after Check.
  void CheckRefusals();
  // After the time was looked at: who still waits must still have time.
  void CheckDeadlines(const DeviceStats& stats) const;

  const std::map<CallId, Call>& waiting() const { return calls_; }
  std::vector<BlockId> BlocksOf(SessionId session) const;
  std::vector<SegmentId> SegmentsOf(SessionId session) const;
  bool Fills(SessionId session, SegmentId segment) const;
  std::optional<RequestId> AnyRequestOf(SessionId session) const;
  const AllocateRequest* RequestOf(SessionId session, RequestId request) const;
  Bytes HeldOn(SessionId session, uint32_t heap) const;
  size_t live() const { return memory_.size(); }

  // How much was looked at: a model that never checks anything would pass.
  struct Seen {
    uint64_t grants = 0, reuses = 0, refusals = 0, exact_refusals = 0, never = 0, attached = 0;
  };
  const Seen& seen() const { return seen_; }
  const IdleModel& idle() const { return idle_; }

 private:
  struct Memory {
    BlockClass block_class;
    Bytes bytes;
    Bytes made_for;  // The buffer.
    const ExportedHandle* handle = nullptr;
    std::optional<TenantId> tenant;  // Of the first holder, for ever.
    std::optional<size_t> pool;      // Where it came from, likewise.
    bool held = false;
    bool clean = true;      // Nobody has had it since it was made or cleared.
    bool retired = false;   // Must be freed, never be leased again.
    uint64_t released = 0;  // When, of all releases; 0: never.
    bool aged = false;      // Not given back since by an order that came to nothing.
  };
  struct Lease {
    SessionId session;
    DeviceAllocationId memory;
    Bytes size;
    RequestId request;
  };
  struct Segment {
    TenantId tenant{0};
    std::string name;
    SessionId writer;
    std::vector<std::pair<BlockId, DeviceAllocationId>> blocks;
    std::map<SessionId, uint32_t> attached;
    bool sealed = false;
  };
  struct Remembered {
    AllocateRequest request;
    std::optional<CallId> call;
    std::vector<BlockId> granted;
    std::set<BlockId> held;
  };
  // What a session was asked for, until when.
  struct AskedBack {
    Bytes bytes;
    absl::Time until;
  };
  struct PoolSums {
    Bytes leased, rounding;
    uint64_t blocks = 0;
  };
  // What is in use for good: leases and segments that somebody is attached to.
  struct HeapSums {
    Bytes live, used;
  };
  struct RefusedCall {
    size_t call = 0;  // In `ended_`.
    Refusal refusal;
    bool at_once = false;
  };
  // Until when the call may wait for what others hold, and for anything at all.
  struct Terms {
    std::optional<absl::Time> wait_until;
    absl::Time answer_by;
  };
  static Terms TermsOf(const Call& call);
  bool IsLate(const RefusedCall& refused) const;
  std::vector<Need> NeedsOf(const Call& call) const;
  Need NeedOf(Bytes size, const MemoryWish& wish, std::optional<HandleType> handle_type) const;
  bool NeverFits(const std::vector<Need>& needs, bool padded, bool segment) const;
  // The least that a request could have had of each heap, and of the number of
  // allocations, when everything idle had gone for it.
  struct Room {
    std::vector<Bytes> heaps;
    uint64_t blocks = 0;
    bool exact = true;  // Nothing was promised to others, or kept for them.
  };
  Room RoomFor(const RefusedCall& refused) const;
  void NoteFills(const DeviceStats& stats, const Outside& outside);
  // Jobs that wait for the device and surely are orders'; there may be more.
  size_t SureFills() const {
    return std::count(may_ask_driver_.begin(), may_ask_driver_.end(), false);
  }
  // Calls that may be orders at the device, promised, or in a queue.
  std::vector<const Call*> Orders() const;
  // By the last Check: each order is at the device or in a queue.
  bool NonePromised() const;
  Room Committed() const;
  // However they are laid on the heaps.
  static bool Fits(const std::vector<Need>& needs, Room room, bool padded);
  static bool FitsFrom(size_t first, const std::vector<Need>& needs, Room& room, bool padded);
  static bool FitsOnOneHeap(const std::vector<Need>& needs, const Room& room, bool padded);
  void CheckRefusal(const RefusedCall& refused);
  void CheckFigures(const RefusedCall& refused, const std::vector<Need>& needs, const Room& room);
  void CheckAskedFirst(const RefusedCall& refused);
  void CheckInTime(const RefusedCall& refused);
  void CheckPools(const DeviceStats& stats) const;
  void CheckHeaps(const DeviceStats& stats) const;
  // Against the statistics before it.
  void CheckIdle(const DeviceStats& stats, const Outside& outside);
  IdleModel::Block IdleBlockOf(DeviceAllocationId id) const;
  IdleModel::Request IdleRequestOf(const Call& call) const;
  // All that is idle, where nothing is on its way and all of it has been seen before.
  std::optional<std::vector<IdleModel::Block>> AllIdle(const DeviceStats& stats,
                                                       const Outside& outside);

  uint32_t HeapOf(uint32_t type) const { return device_.memory_types[type].heap; }
  Bytes NowOn(uint32_t heap) const;
  DeviceAllocationId Hold(const ExportedHandle* handle, TenantId tenant, size_t pool,
                          const GrantedBlock& block);
  void Use(const Memory& memory, bool used);
  void EndLease(BlockId block, bool retire);
  void Forget(std::map<SegmentId, Segment>::iterator at);
  void SetIdle(SessionId session, uint32_t heap, Bytes bytes);

  const DeviceInfo device_;
  const AdmissionOptions options_;
  IdleModel idle_{device_, options_};
  std::map<std::string, size_t> pool_by_name_;  // The direct row comes last.
  Bytes granularity_ = Bytes(1);
  Bytes extra_;

  std::map<SessionId, TenantId> tenants_;
  std::map<DeviceAllocationId, Memory> memory_;
  std::map<const ExportedHandle*, DeviceAllocationId> by_handle_;
  std::map<BlockId, Lease> leases_;
  std::map<SessionId, std::set<BlockId>> leases_of_;
  std::set<BlockId> ids_;  // Of all leases that there were.
  std::map<SegmentId, Segment> segments_;
  std::map<CallId, Call> calls_;
  std::map<std::pair<SessionId, RequestId>, Remembered> requests_;
  std::map<uint32_t, std::map<SessionId, Bytes>> idle_in_clients_;
  std::map<std::pair<uint32_t, SessionId>, AskedBack> asked_back_;
  std::vector<std::optional<Bytes>> driver_budget_;

  std::vector<PoolSums> pool_sums_;
  std::vector<HeapSums> heap_sums_;
  uint64_t used_blocks_ = 0;
  Bytes segment_bytes_;

  // Since Begin.
  absl::Time now_;
  bool device_refused_ = false;
  bool tenants_changed_ = false;
  bool heaps_read_ = false;
  std::vector<Call> ended_;
  std::vector<Bytes> now_before_;
  std::vector<RefusedCall> refused_;
  // Of the last Check.
  DeviceStats stats_;
  Seen seen_;
  uint64_t checks_ = 0;
  std::deque<bool> may_ask_driver_;  // Of the jobs that wait for the device.
  Bytes sized_;
  uint64_t releases_ = 0;
  uint64_t lost_hits_ = 0;  // Of orders that came to nothing.
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_REFERENCE_MODEL_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// One device's memory, handed out to sessions.
#ifndef DAEMON_CORE_DEVICE_BROKER_H_
#define DAEMON_CORE_DEVICE_BROKER_H_

#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "daemon/core/alarm.h"
#include "daemon/core/device_executor.h"
#include "daemon/core/device_ledger.h"
#include "daemon/core/device_memory.h"
#include "daemon/core/device_observer.h"
#include "daemon/core/event_sink.h"
#include "daemon/core/fill_job.h"
#include "daemon/core/requests.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// What a broker works with. All of it must outlive the broker.
struct BrokerPorts {
  DeviceMemory& device;
  DeviceExecutor& executor;
  EventSink& events;
  const Clock& clock;
  Alarm& alarm;
  DeviceObserver* observer = nullptr;
};

// Joins the device's ledger (budget, pools, leases, segments: bookkeeping under
// one mutex) to the device (calls that take their time, under none).
//
// The life of a request: under the mutex the ledger decides and collects what
// has to follow — blocks to free, memory to allocate, events to tell. After the
// mutex is released that is posted to the executor and the event sink. A device
// job, when it is through, takes the mutex again to book what happened.
//
//     Allocate ──▶ every block idle in a pool ─────────────▶ Grant
//         │
//         ├──▶ bytes reserved ─▶ job: allocate, clear ─▶ AllocateDone
//         ├──▶ idle blocks and unused segments evicted; waits for their bytes,
//         │    then as above
//         └──▶ refused
//
// Thread-safe. No method blocks, except that the mutex is held by others for the
// length of some bookkeeping.
class DeviceBroker {
 public:
  // The executor must be stopped, and have run what was posted, before the broker
  // is destroyed; and Tick must not be called any more.
  DeviceBroker(const LedgerOptions& options, const BrokerPorts& ports);

  const DeviceInfo& info() const { return ports_.device.info(); }

  // A session may use the device from here on.
  //   PERMISSION_DENIED  a software device serves one tenant, and has another
  absl::Status AddSession(SessionId session, TenantId tenant);

  // Gives back everything that the session holds, in the background: leased
  // blocks are freed, not kept, since its work on them may still be running; a
  // segment that it fills goes to the next that waits. Waiting calls of the
  // session end with CANCELLED. Ending twice is harmless.
  void EndSession(SessionId session);

  // Leases all blocks or none. A Deferred answer is followed by one AllocateDone
  // with `call`.
  //   UNAUTHENTICATED     the session has ended
  //   INVALID_ARGUMENT    no block, too many, a size or an alignment out of range, a
  //                       request id that stands for another request
  //   FAILED_PRECONDITION the device has no such memory
  //   RESOURCE_EXHAUSTED  it does not fit; RefusalOf has the details
  absl::StatusOr<std::variant<Grant, Deferred>> Allocate(SessionId session, CallId call,
                                                         const AllocateRequest& request);

  // Gives back all blocks or none. They become idle, or are freed.
  //   NOT_FOUND         one of them is not leased by this session
  //   INVALID_ARGUMENT  none, too many, or one twice
  absl::Status Release(SessionId session, absl::Span<const BlockId> blocks);

  // Undoes an Allocate whose answer was lost: gives back what is still held of its
  // grant, or ends it where it still waits (its call ends with CANCELLED).
  //   INVALID_ARGUMENT  the id is 0
  //   NOT_FOUND         no such request of this session holds or waits for anything
  absl::Status Undo(SessionId session, RequestId request);

  // The descriptor of a block that the session leases, or of a segment that it
  // fills or is attached to.
  //   NOT_FOUND  neither; the same answer as for a block that does not exist
  absl::StatusOr<FetchedBlock> Fetch(SessionId session, BlockId block);

  // Attaches to a segment of the session's tenant or becomes its writer. A
  // Deferred answer is followed by one OpenSegmentDone with `call`.
  //   ALREADY_EXISTS  it exists with another size or kind
  //   NOT_FOUND       kAttach, and there is none
  //   others          as Allocate
  absl::StatusOr<std::variant<SegmentView, Deferred>> OpenSegment(SessionId session, CallId call,
                                                                  OpenSegmentRequest request);

  // Completes the contents; those who wait are attached.
  //   NOT_FOUND            the session is not attached to it
  //   FAILED_PRECONDITION  the session is not its writer, or it is sealed already
  absl::Status SealSegment(SessionId session, SegmentId segment, Checksum checksum);

  // Detaches; before sealing, abandons the contents.
  //   NOT_FOUND  the session is not attached to it
  absl::Status CloseSegment(SessionId session, SegmentId segment);

  // Nobody waits for this call any more. Its event still comes, with CANCELLED
  // or with the answer that was already on its way; an answer whose call nobody
  // remembers must be undone by whoever dropped it (Release, CloseSegment).
  void Cancel(SessionId session, CallId call);

  // What the session keeps idle itself, by heap; heaps that are not named are 0.
  // Believed up to what the session holds there.
  //   INVALID_ARGUMENT  no such heap, or one twice
  //   UNAUTHENTICATED   the session has ended
  absl::Status ReportIdle(SessionId session, absl::Span<const IdleReport> reports);

  // Frees idle blocks, oldest first, until leased and idle bytes of the pool, or of
  // the device, are at most the target or none is idle.
  //   NOT_FOUND  no pool of that name; says which there are
  absl::StatusOr<TrimResult> Trim(const TrimRequest& request);

  // Time has passed: see Alarm.
  void Tick();

  // What the driver says of each heap now. After the device's jobs this is asked of
  // the device; a device that says nothing leaves it to whoever calls this.
  void UpdateHeaps(std::vector<HeapReport> reports);

  // Frees what nobody holds: at the daemon's end, after the sessions'.
  void EvictEverything();

  DeviceStats Stats() const;
  // Ordered by id.
  std::vector<SegmentStats> ListSegments() const;
  HolderStats Holdings(SessionId session) const;
  // Ordered by block id, those above `after` only, at most `limit`.
  std::vector<LeaseStats> ListLeases(BlockId after, size_t limit) const;

 private:
  template <typename MakeTurn, typename Function>
  auto Decide(MakeTurn turn, Function decide, std::optional<CallId> call = std::nullopt);
  void Record(Turn turn, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Outcome>
  void NoteAnswer(CallId call, const Outcome& outcome, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTurn(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Perform(Effects effects);
  void FillNext();
  bool FillSome(FillJob& job);
  void ReadHeaps();
  void FreeNext();

  const BrokerPorts ports_;
  const bool records_turns_;
  absl::Time heaps_read_at_ = absl::InfinitePast();  // The allocating thread's.
  mutable Mutex mutex_;
  DeviceLedger ledger_ ABSL_GUARDED_BY(mutex_);
  // What the executor's jobs are for, in the order of the decisions: threads post
  // jobs in any order, and each takes the first of these.
  std::deque<FillJob> fills_ ABSL_GUARDED_BY(mutex_);
  std::deque<Block> frees_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  // What the alarm was told; earlier times only are told again.
  absl::Time armed_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_BROKER_H_

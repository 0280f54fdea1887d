// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who gets memory: at once, when it is free, after others gave some back, or not
// at all.
#ifndef DAEMON_CORE_ADMISSION_H_
#define DAEMON_CORE_ADMISSION_H_

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "daemon/core/client_caches.h"
#include "daemon/core/device_room.h"
#include "daemon/core/effects.h"
#include "daemon/core/fill_order.h"
#include "daemon/core/order.h"
#include "daemon/core/order_plan.h"
#include "daemon/core/refusal.h"
#include "daemon/core/wait_queue.h"

namespace heapbroker {

// Why a request needs more than it asks for.
inline constexpr absl::string_view kDriverPads =
    "the driver needs that much for a block of the size asked for";

struct AdmissionOptions {
  std::vector<HeapLimit> heaps;          // One for each heap of the device.
  std::vector<CountLimit> count_limits;  // The lowest counts.
  std::vector<ResolvedPool> pools;       // None: one for each exportable memory type.
  MatchingPolicy matching;
  // How long a block stays idle; zero: for ever.
  absl::Duration idle_ttl = absl::Minutes(10);
  // How long the first in a queue may hold what becomes free, at a time.
  absl::Duration head_timeout = absl::Seconds(5);
  // How long clients have to give back what they keep idle.
  absl::Duration give_back_time = absl::Milliseconds(500);
};

// The life of an order:
//
//   Submit ─▶ granted ◀───────────────────────────────────────────────┐
//     │                                                               │EndFill
//     ├─▶ in work: bytes are taken, the device allocates or clears ───┤
//     │      ▲                                                        │
//     ├─▶ promised: waits for bytes that are idle or being freed      │
//     │      ▲                                                        │
//     ├─▶ queued: waits for what others hold, while its deadline      │
//     │   allows; or for what clients were asked to give back         │
//     │      │ its time is up                                         ▼
//     └──────┴─▶ refused: never fits, or a limit is reached      failed, or once
//                                                                 more after evicting
//
// So an order is refused only where everything that is idle would not make enough
// room, or could not be freed while anyone waits for its answer. One without a deadline
// never waits for another client's goodwill, but for the moment in which clients are
// asked for what they keep idle.
//
// Bookkeeping only; guarded by its owner's mutex.
class Admission {
 public:
  // All must outlive this, but the options.
  Admission(const DeviceInfo& device, const AdmissionOptions& options, DeviceRoom& room,
            ClientCaches& caches, const Clock& clock);

  using Blocks = std::vector<LeasedBlock>;
  struct Finished {
    Order order;
    absl::StatusOr<Blocks> blocks;
  };

  // The order's end, if it has come: a grant out of the pools, or a refusal
  // (RefusalOf). If not, Finished follows from one of the methods below; where that may
  // not be, the order is refused with `instead_of_later`.
  std::optional<Finished> Submit(Order order, const std::optional<Refusal>& instead_of_later,
                                 Effects& effects);

  // Changes what an item of an order in work has taken, when the device says how
  // much it needs.
  //   RESOURCE_EXHAUSTED  the heap's budget has not that much
  absl::Status AdjustReservation(OrderId order, size_t item, const BufferNeeds& needs,
                                 Effects& effects);

  // The device is through with an order. Unset where the order was put back to wait.
  std::optional<Finished> EndFill(OrderId order, Filled filled, Effects& effects);

  // Tries those that wait. To be called after anything that may have made room;
  // `tenant` is the one that blocks became idle of.
  std::vector<Finished> Pump(std::optional<TenantId> tenant, Effects& effects);
  // The same, for what time alone changes: deadlines, turns, old idle blocks.
  std::vector<Finished> Tick(Effects& effects);
  // When Tick should be called; InfiniteFuture where nothing is due.
  absl::Time NextDue() const;

  // Nobody wants the order of this call any more (of any call of the session,
  // where `call` is unset). Orders that wait end here; those in work end in
  // EndFill, with CANCELLED. `made_room` becomes true where others may go on now.
  std::vector<Finished> Cancel(SessionId session, std::optional<CallId> call, bool& made_room,
                               Effects& effects);
  // The order of the session's call `from`, which must not be finished, is that of the
  // call of `by` from now on, keeps its place, and waits as long as `by` may. Its end
  // if that has come, as from Submit.
  std::optional<Finished> TakeOver(CallId from, const Order& by, Effects& effects);

  // Blocks that orders of the tenant want which are not finished.
  size_t UnfinishedBlocks(TenantId tenant) const;
  // The requests, and what waits.
  void AddStats(DeviceStats& stats) const;

 private:
  enum class State { kPromised, kRetrying, kQueued, kInWork };
  // What clients were asked for an order, and may still give.
  struct Asked {
    uint32_t heap = 0;
    Bytes bytes;
    absl::Time until = absl::InfinitePast();
  };
  // An order that is not finished.
  struct Job {
    Order order;
    State state = State::kInWork;
    Plan plan = {};                  // kPromised, kInWork.
    std::vector<size_t> items = {};  // kInWork: item of the FillOrder -> part of the plan.
    uint32_t heap = 0;               // kQueued: whose queue, and until when.
    absl::Time until = absl::InfiniteFuture();
    absl::Time due = absl::InfiniteFuture();  // When it has to be looked at next.
    Asked asked = {};
    uint64_t after_frees = 0;  // kRetrying: not before so many blocks have been freed.
    bool counted = false;      // As a request of its pools.
    bool retried = false;
    bool learned = false;  // kInWork: that the device needs more than there was.
    bool cancelled = false;
  };
  using Jobs = std::map<OrderId, Job>;
  using Granted = Blocks;
  struct Working {};
  struct NotAllowed {};  // It fits, but not in the way that may be.
  using Attempt = std::variant<Granted, Working, Refusal, NotAllowed>;
  // What may come of an attempt: a grant; also work of the device, on idle blocks; also
  // new blocks; also a promise.
  enum class Allowed { kGrant, kHits, kWork, kPromise };

  // On success the job has its plan and its new state.
  Attempt Try(Job& job, Effects& effects, Allowed allowed = Allowed::kPromise);
  static bool IsAllowed(const Order& order, const Plan& plan, Allowed allowed);
  Attempt Begin(Job& job, Plan plan, Effects& effects);
  Attempt Start(Job& job, Effects& effects);
  Finished Finish(Order order, absl::StatusOr<Blocks> blocks);
  Finished Refuse(Order order, const Refusal& refusal);
  void CountRequests(Job& job);
  // Of each heap.
  using Reserves = absl::InlinedVector<Reserve, 4>;
  // What the job has to leave to those whose turn it is.
  Reserves ReservesFor(const Job& job);
  void KeepFor(const Order& head, Reserves& reserves) const;
  // Whose turn it is now in a heap's queue.
  std::optional<OrderId> Head(uint32_t heap) {
    return queues_[heap].Head(clock_.Now(), elections_);
  }
  Jobs::iterator Insert(Job job);
  Job Extract(Jobs::iterator at);
  void Land(Jobs::iterator at, Attempt attempt, State before, std::vector<Finished>& finished);

  // Whether it may still wait for what others hold; and whether it does, or would.
  bool MayWait(const Job& job) const;
  bool Waits(const Job& job) const;
  // How long it may stay in a queue; unset where it may not.
  std::optional<absl::Time> WaitUntil(const Job& job, const Refusal& refusal) const;
  void Enqueue(Jobs::iterator at, const Refusal& refusal, absl::Time until, Effects& effects);
  // Of a job in a queue: until when it may be there.
  void StayUntil(Job& job, const Refusal& refusal, absl::Time until, Effects& effects);
  void LeaveQueue(const Job& job);
  void SetDue(Job& job, absl::Time due);
  void Attend(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects);
  void AskClients(Job& job, const Refusal& refusal, Effects& effects);
  void AskInTime(Job& job, Effects& effects);
  void AnswerInTime(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects);
  Finished RefuseInTime(Jobs::iterator at);
  bool HasLessThanItsLimit(uint32_t heap) const;
  void AskDriver(Effects& effects);
  void PumpPromises(std::vector<Finished>& finished, Effects& effects);
  void BreakPromise(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects);
  void TryAgain(Jobs::iterator at, std::vector<Finished>& finished, Effects& effects);
  void PumpRetries(std::vector<Finished>& finished, Effects& effects);
  void PumpQueues(std::vector<Finished>& finished, Effects& effects);
  // True if it has served anyone.
  bool PumpQueue(uint32_t heap, std::vector<Finished>& finished, Effects& effects);
  void PumpHits(uint32_t heap, TenantId tenant, std::vector<Finished>& finished, Effects& effects);

  Blocks TakeMade(Job& job, std::vector<DeviceAllocation> made, Effects& effects);
  bool WorthRetrying(const Job& job, const Part& failed) const;
  absl::Status Explain(const Part& failed, Filled filled, Effects& effects);
  void Unmake(const Order& order, Blocks blocks, Effects& effects);
  // Of a job that waits: what it has of its plan already goes back.
  void GiveUpPlan(Job& job, Effects& effects);
  BlockId NextBlock() { return BlockId(NumberOnDevice(++last_block_, device_.index)); }
  static absl::Status Cancelled();

  const DeviceInfo& device_;
  const AdmissionOptions options_;
  DeviceRoom& room_;
  ClientCaches& caches_;
  const Clock& clock_;
  Planner planner_;
  Jobs jobs_;
  std::map<TenantId, size_t> unfinished_blocks_;  // What `jobs_` want; never zero.
  std::map<std::pair<SessionId, CallId>, OrderId> by_call_;
  std::set<OrderId> promised_;  // In their order; likewise:
  std::set<OrderId> retrying_;
  std::vector<WaitQueue> queues_;  // By heap.
  uint64_t elections_ = 0;         // Of heads, in all of them.
  std::set<std::pair<absl::Time, OrderId>> dues_;
  absl::Time driver_asked_at_ = absl::InfinitePast();
  RequestTotals totals_;
  uint64_t last_block_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ADMISSION_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who gets memory, at once, after others' memory was freed, or not at all.
#ifndef DAEMON_CORE_ADMISSION_H_
#define DAEMON_CORE_ADMISSION_H_

#include <list>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/block_size.h"
#include "daemon/core/device_info.h"
#include "daemon/core/effects.h"
#include "daemon/core/heap_budget.h"
#include "daemon/core/leases.h"
#include "daemon/core/pool_set.h"
#include "daemon/core/pool_spec.h"
#include "daemon/core/requests.h"
#include "daemon/core/segments.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// One block of an order.
struct Want {
  Bytes size;
  Bytes alignment;
  uint32_t memory_type = 0;
  bool zeroed = false;
  bool fresh = false;  // Neither out of a pool nor back into one: segments.
};

// All the memory of one Allocate or of one segment.
struct Order {
  OrderId id;
  CallId call;
  SessionId session;
  TenantId tenant;
  std::optional<SegmentId> segment;  // Unset: leases.
  std::vector<Want> wants;
};

struct AdmissionOptions {
  std::vector<HeapLimit> heaps;          // One for each heap of the device.
  std::vector<CountLimit> count_limits;  // The lowest counts.
  std::vector<ResolvedPool> pools;       // None: one for each exportable memory type.
  MatchingPolicy matching;
  // How long a block stays idle; zero: for ever.
  absl::Duration idle_ttl = absl::Minutes(10);
  // How long the first in a queue may hold what becomes free.
  absl::Duration head_timeout = absl::Seconds(5);
  // How long clients have to give back what they keep idle.
  absl::Duration give_back_time = absl::Milliseconds(500);
};

// Gives memory to orders out of the pools and the heaps' budgets.
//
// An order that does not fit now waits, but only for bytes that are already on
// their way: idle blocks and unused segments are evicted for it, and it is tried
// again when the device has freed them. So it is refused only where everything
// that is idle would not make enough room, and it never waits for another
// client's goodwill. Orders that wait are served in the order in which they came;
// one that shares a heap with an earlier one does not overtake it, except with
// blocks that are idle in its pool.
//
// Bookkeeping only; guarded by its owner's mutex.
class Admission {
 public:
  // `leases` tells which tenants have sessions, `segments` which segments are
  // unused; both must outlive this.
  Admission(const DeviceInfo& device, const AdmissionOptions& options, const Leases& leases,
            Segments& segments);

  using Blocks = std::vector<LeasedBlock>;
  struct Finished {
    Order order;
    absl::StatusOr<Blocks> blocks;
  };

  // The order's end, if it has come: a grant out of the pools, or a refusal. If
  // not, Finished follows from one of the methods below.
  //   RESOURCE_EXHAUSTED  it does not fit; says by which limit
  std::optional<Finished> Submit(Order order, Effects& effects);

  // Changes what an item of an order in work has reserved, when the device says
  // how much it needs.
  //   RESOURCE_EXHAUSTED  the heap's budget has not that much
  absl::Status AdjustReservation(OrderId order, size_t item, Bytes bytes);

  // The device is through with an order: `made` has an allocation for each item
  // up to the first that failed, `status` says why that one did. Unset where the
  // order was put back to wait.
  std::optional<Finished> EndFill(OrderId order, std::vector<DeviceAllocation> made,
                                  absl::Status status, Effects& effects);

  // The device has freed the block.
  void Freed(const Block& block);

  // Tries those that wait. To be called after anything that may have made room.
  std::vector<Finished> Pump(Effects& effects);

  // Nobody wants the order of this call any more (of any call of the session,
  // where `call` is unset). Orders that wait end here; those in work end in
  // EndFill, with CANCELLED.
  std::vector<Finished> Cancel(SessionId session, std::optional<CallId> call);

  // Takes a block back, to be kept if the pool can, or to be freed.
  void GiveBack(LeasedBlock leased, Effects& effects);
  void Discard(LeasedBlock leased, NotKeptReason reason, Effects& effects);
  // Frees all idle blocks and unused segments.
  void EvictEverything(Effects& effects);

  // Fills in all but the segments.
  void AddStats(DeviceStats& stats) const;

 private:
  struct Heap {
    HeapBudget budget;
    Bytes being_freed;
  };
  // What serves one want.
  struct Part {
    size_t pool = 0;
    std::variant<IdleBlock, MissReason> found = MissReason::kNoIdleBlock;
    Bytes exact;
    Bytes reserved;  // Of a miss.

    bool is_hit() const { return std::holds_alternative<IdleBlock>(found); }
  };
  using Parts = std::vector<Part>;
  struct InWork {
    Order order;
    Parts parts;
    std::vector<size_t> items;  // Item of the FillOrder -> index into `parts`.
    bool retried = false;
    bool cancelled = false;
  };
  struct Waiting {
    Order order;
    bool retried = false;
    uint64_t after_frees = 0;  // Not before so many blocks have been freed.
  };
  // Bytes by heap, and how many allocations.
  struct Needs {
    std::map<uint32_t, Bytes> bytes;
    uint64_t allocations = 0;
  };
  struct MustWait {};
  using Attempt = std::variant<Blocks, FillOrder, MustWait, absl::Status>;
  // Heaps that an earlier order waits for.
  using IsBlocked = absl::FunctionRef<bool(uint32_t heap)>;

  Attempt Try(const Waiting& waiting, IsBlocked is_blocked, Effects& effects);
  void Enqueue(std::list<Waiting>::iterator before, Waiting waiting);
  std::list<Waiting>::iterator Dequeue(std::list<Waiting>::iterator at);
  Attempt Start(const Waiting& waiting, Parts parts);
  Parts FindIdle(const Order& order);
  bool ReserveMisses(const Order& order, Parts& parts);
  void CancelReservations(const Order& order, Parts& parts);
  void PutBackHits(const Order& order, Parts& parts);
  void CountRequests(const Waiting& waiting, const Parts& parts);

  absl::Status CheckEverFits(const Order& order) const;
  Needs NeedsOf(const Order& order, const Parts& parts, bool count_hits) const;
  absl::Status MakeRoom(const Needs& needs, Effects& effects);
  absl::Status CheckRoom(const Needs& needs) const;
  bool EvictOneOn(uint32_t heap, Effects& effects);
  void StartFreeing(Block block, Effects& effects);
  Block LeaseAnew(Part hit);
  Block MakeBlock(const Order& order, const Want& want, size_t pool, DeviceAllocation memory);
  void Unmake(const Order& order, Blocks blocks, Effects& effects);
  bool WorthRetrying(const InWork& work, const absl::Status& status) const;
  uint32_t HeapOf(const Want& want) const { return device_.memory_types[want.memory_type].heap; }

  const DeviceInfo& device_;
  const Leases& leases_;
  Segments& segments_;
  const uint64_t max_allocations_;
  std::vector<Heap> heaps_;
  PoolSet pools_;
  std::list<Waiting> waiting_;
  std::map<uint32_t, uint64_t> wants_waiting_;  // By heap, of `waiting_`; never 0.
  std::map<OrderId, InWork> in_work_;
  uint64_t allocations_ = 0;  // Blocks, from reservation until freed.
  uint64_t being_freed_ = 0;  // Of those, with the device to free.
  uint64_t freed_ = 0;        // Since the daemon started.
  uint64_t last_block_ = 0;
  ReleaseStamp last_stamp_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ADMISSION_H_

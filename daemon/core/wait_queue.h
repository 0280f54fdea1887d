// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who waits for a heap's memory, and whose turn it is.
#ifndef DAEMON_CORE_WAIT_QUEUE_H_
#define DAEMON_CORE_WAIT_QUEUE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/effects.h"
#include "daemon/core/requests.h"

namespace heapbroker {

// Tenants take turns; inside a tenant the highest priority goes first, then who
// came first. One order at a time is the head, for which memory that becomes free is
// held. It stays the head until it leaves or its time is up; then it rests.
//
//   Add ──▶ waits ──its turn──▶ head ──▶ left
//             ▲                  │ its time is up
//             └───── rests ◀─────┘
//
// A rest ends when all tenants that wait have had a turn, and after that as long a
// time as a turn may take. So the others of its tenant go before the order that rests,
// whatever their priority. And where nobody else waits, nothing is held in that time:
// who cannot wait, and those that rest, may have what there is. After it an order
// that rested waits behind the others like one that has just come: it is not starved
// by small ones.
//
// Bookkeeping only; guarded by its owner's mutex. O(log n) in tenants and orders;
// Remove is O(n) in the orders of the tenant and priority, and in those that rest.
class WaitQueue {
 public:
  // How long one order may be the head, which must be longer than zero.
  explicit WaitQueue(absl::Duration head_timeout) : head_timeout_(head_timeout) {}

  void Add(OrderId order, TenantId tenant, Priority priority);
  // The order must be in here. If it was the head, its tenant's turn is over.
  void Remove(OrderId order, TenantId tenant, Priority priority);

  // Who is the head at that time, which must not go back; unset where nobody waits,
  // or all rest. `elections` counts those of all queues: it tells which of two heads
  // was elected first.
  std::optional<OrderId> Head(absl::Time now, uint64_t& elections);
  // The number of the head's election.
  uint64_t election() const { return election_; }
  // When time alone changes who is the head; InfiniteFuture where it does not.
  absl::Time NextChange() const;

  // The tenant's orders in the order in which they would be served, at most `most`;
  // and those that rest, of any tenant, the longest first.
  std::vector<OrderId> Of(TenantId tenant, size_t most) const;
  std::vector<OrderId> Resting(size_t most) const;

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  struct Waiter {
    OrderId order;
    TenantId tenant;
    Priority priority = Priority::kNormal;
  };
  // Unset: from there on those that rest wait for the time only.
  using Turns = std::list<std::optional<TenantId>>;
  struct Tenant {
    // By priority. Never all empty.
    std::array<std::deque<OrderId>, kPriorityCount> orders;
    Turns::iterator turn;
  };
  using Tenants = std::map<TenantId, Tenant>;

  void PutLast(const Waiter& waiter);
  bool TakeOut(const Waiter& waiter);
  void EndTurn(TenantId tenant);
  void StartRest();
  void EndRest();
  void Elect(absl::Time now, uint64_t election);
  static bool IsEmpty(const Tenant& tenant);

  const absl::Duration head_timeout_;
  Tenants tenants_;           // Those with orders that do not rest.
  Turns turns_;               // The first one's is next, or now where there is a head.
  bool rest_is_due_ = false;  // There is an unset one among them.
  std::deque<Waiter> resting_;
  absl::Time rest_until_ = absl::InfiniteFuture();  // Where it is known.
  std::optional<Waiter> head_;
  absl::Time elected_at_;
  uint64_t election_ = 0;
  size_t size_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_WAIT_QUEUE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who waits for a heap's memory, and whose turn it is.
#ifndef DAEMON_CORE_WAIT_QUEUE_H_
#define DAEMON_CORE_WAIT_QUEUE_H_

#include <array>
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
// came first. One order at a time is the head, which alone may have memory that
// becomes free. It stays the head until it leaves or its time is up.
//
// Bookkeeping only; guarded by its owner's mutex. O(log n) in tenants and orders;
// Remove is O(n) in the orders of the tenant and priority.
class WaitQueue {
 public:
  void Add(OrderId order, TenantId tenant, Priority priority);
  // The order must be in here. If it was the head, its tenant's turn is over.
  void Remove(OrderId order, TenantId tenant, Priority priority);

  // Elects the next if there is no head; unset where nobody waits.
  std::optional<OrderId> Head(absl::Time now);
  // The head as it is, and since when.
  std::optional<OrderId> elected() const { return head_; }
  absl::Time elected_at() const { return elected_at_; }
  // The head's time is up: it goes to the end of its tenant's orders of the same
  // priority, and the tenant's turn is over.
  void Rotate();

  // The tenant's orders in the order in which they would be served, at most `most`.
  std::vector<OrderId> Of(TenantId tenant, size_t most) const;

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  struct Tenant {
    // By priority.
    std::array<std::deque<OrderId>, kPriorityCount> orders;
    std::list<TenantId>::iterator turn;
  };
  void EndTurn();
  static bool IsEmpty(const Tenant& tenant);

  std::map<TenantId, Tenant> tenants_;
  std::list<TenantId> turns_;  // The first one's is next.
  std::optional<OrderId> head_;
  Priority head_priority_ = Priority::kNormal;
  absl::Time elected_at_;
  size_t size_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_WAIT_QUEUE_H_

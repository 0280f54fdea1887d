// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/wait_queue.h"

#include <algorithm>

namespace heapbroker {

void WaitQueue::Add(OrderId order, TenantId tenant, Priority priority) {
  auto [found, is_new] = tenants_.try_emplace(tenant);
  if (is_new) found->second.turn = turns_.insert(turns_.end(), tenant);
  found->second.orders[static_cast<size_t>(priority)].push_back(order);
  ++size_;
}

void WaitQueue::Remove(OrderId order, TenantId tenant, Priority priority) {
  const auto found = tenants_.find(tenant);
  std::deque<OrderId>& orders = found->second.orders[static_cast<size_t>(priority)];
  orders.erase(std::find(orders.begin(), orders.end(), order));
  --size_;
  if (head_ == order) EndTurn();
  if (IsEmpty(found->second)) {
    turns_.erase(found->second.turn);
    tenants_.erase(found);
  }
}

std::optional<OrderId> WaitQueue::Head(absl::Time now) {
  if (head_ || turns_.empty()) return head_;
  const Tenant& tenant = tenants_.find(turns_.front())->second;
  for (size_t priority = kPriorityCount; priority-- > 0;) {
    if (tenant.orders[priority].empty()) continue;
    head_ = tenant.orders[priority].front();
    head_priority_ = static_cast<Priority>(priority);
    elected_at_ = now;
    break;
  }
  return head_;
}

void WaitQueue::Rotate() {
  std::deque<OrderId>& orders =
      tenants_.find(turns_.front())->second.orders[static_cast<size_t>(head_priority_)];
  const auto at = std::find(orders.begin(), orders.end(), *head_);
  std::rotate(at, at + 1, orders.end());
  EndTurn();
}

std::vector<OrderId> WaitQueue::Of(TenantId tenant, size_t most) const {
  std::vector<OrderId> orders;
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return orders;
  for (size_t priority = kPriorityCount; priority-- > 0;) {
    for (OrderId order : found->second.orders[priority]) {
      if (orders.size() == most) return orders;
      orders.push_back(order);
    }
  }
  return orders;
}

// The head's tenant is the first: nobody else's turn ends.
void WaitQueue::EndTurn() {
  turns_.splice(turns_.end(), turns_, turns_.begin());
  head_ = std::nullopt;
}

bool WaitQueue::IsEmpty(const Tenant& tenant) {
  return std::all_of(tenant.orders.begin(), tenant.orders.end(),
                     [](const auto& orders) { return orders.empty(); });
}

}  // namespace heapbroker

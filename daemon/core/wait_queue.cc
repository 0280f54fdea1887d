// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/wait_queue.h"

#include <algorithm>
#include <utility>

namespace heapbroker {

void WaitQueue::Add(OrderId order, TenantId tenant, Priority priority) {
  PutLast({order, tenant, priority});
  ++size_;
}

void WaitQueue::PutLast(const Waiter& waiter) {
  auto [found, is_new] = tenants_.try_emplace(waiter.tenant);
  if (is_new) found->second.turn = turns_.insert(turns_.end(), waiter.tenant);
  found->second.orders[static_cast<size_t>(waiter.priority)].push_back(waiter.order);
}

void WaitQueue::Remove(OrderId order, TenantId tenant, Priority priority) {
  --size_;
  if (!TakeOut({order, tenant, priority})) {
    resting_.erase(std::find_if(resting_.begin(), resting_.end(),
                                [order](const Waiter& waiter) { return waiter.order == order; }));
    if (resting_.empty()) rest_until_ = absl::InfiniteFuture();
    return;
  }
  if (!head_ || head_->order != order) return;
  head_ = std::nullopt;
  EndTurn(tenant);
}

// Of those that do not rest; false where it is none of them. The tenant goes with its
// last order.
bool WaitQueue::TakeOut(const Waiter& waiter) {
  const auto found = tenants_.find(waiter.tenant);
  if (found == tenants_.end()) return false;
  std::deque<OrderId>& orders = found->second.orders[static_cast<size_t>(waiter.priority)];
  const auto at = std::find(orders.begin(), orders.end(), waiter.order);
  if (at == orders.end()) return false;
  orders.erase(at);
  if (IsEmpty(found->second)) {
    turns_.erase(found->second.turn);
    tenants_.erase(found);
  }
  return true;
}

void WaitQueue::EndTurn(TenantId tenant) {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end()) turns_.splice(turns_.end(), turns_, found->second.turn);
}

std::optional<OrderId> WaitQueue::Head(absl::Time now, uint64_t& elections) {
  if (rest_until_ <= now) EndRest();
  if (head_ && elected_at_ + head_timeout_ <= now) StartRest();
  while (!head_ && !turns_.empty()) {
    if (turns_.front()) {
      Elect(now, ++elections);
      break;
    }
    turns_.pop_front();
    rest_is_due_ = false;
    if (!resting_.empty()) rest_until_ = now + head_timeout_;
  }
  return head_ ? std::optional<OrderId>(head_->order) : std::nullopt;
}

void WaitQueue::Elect(absl::Time now, uint64_t election) {
  const TenantId tenant = *turns_.front();
  const Tenant& orders_of = tenants_.find(tenant)->second;
  size_t priority = kPriorityCount - 1;
  while (orders_of.orders[priority].empty()) --priority;
  head_ = Waiter{orders_of.orders[priority].front(), tenant, static_cast<Priority>(priority)};
  elected_at_ = now;
  election_ = election;
}

void WaitQueue::StartRest() {
  const Waiter waiter = *std::exchange(head_, std::nullopt);
  TakeOut(waiter);
  EndTurn(waiter.tenant);
  resting_.push_back(waiter);
  if (!std::exchange(rest_is_due_, true)) turns_.push_back(std::nullopt);
}

void WaitQueue::EndRest() {
  rest_until_ = absl::InfiniteFuture();
  for (const Waiter& waiter : std::exchange(resting_, {})) PutLast(waiter);
}

absl::Time WaitQueue::NextChange() const {
  return std::min(rest_until_, head_ ? elected_at_ + head_timeout_ : absl::InfiniteFuture());
}

std::vector<OrderId> WaitQueue::Of(TenantId tenant, size_t most) const {
  std::vector<OrderId> orders;
  const auto add = [&](OrderId order) {
    if (orders.size() < most) orders.push_back(order);
  };
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) {
    for (size_t priority = kPriorityCount; priority-- > 0;) {
      const std::deque<OrderId>& of = found->second.orders[priority];
      for (size_t i = 0; i < of.size() && orders.size() < most; ++i) add(of[i]);
    }
  }
  for (const Waiter& waiter : resting_) {
    if (orders.size() == most) break;
    if (waiter.tenant == tenant) add(waiter.order);
  }
  return orders;
}

std::vector<OrderId> WaitQueue::Resting(size_t most) const {
  std::vector<OrderId> orders;
  for (size_t i = 0; i < resting_.size() && i < most; ++i) orders.push_back(resting_[i].order);
  return orders;
}

bool WaitQueue::IsEmpty(const Tenant& tenant) {
  return std::all_of(tenant.orders.begin(), tenant.orders.end(),
                     [](const auto& orders) { return orders.empty(); });
}

}  // namespace heapbroker

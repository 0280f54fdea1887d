// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/leases.h"

#include <utility>

namespace heapbroker {

void Leases::AddHolder(SessionId session, TenantId tenant) {
  if (holders_.try_emplace(session, Holder{tenant, {}, {}}).second) ++holders_of_[tenant];
}

std::vector<LeasedBlock> Leases::RemoveHolder(SessionId session) {
  std::vector<LeasedBlock> left;
  const auto found = holders_.find(session);
  if (found == holders_.end()) return left;
  for (auto& [id, leased] : found->second.blocks) left.push_back(std::move(leased));
  const auto count = holders_of_.find(found->second.tenant);
  if (--count->second == 0) holders_of_.erase(count);
  holders_.erase(found);
  return left;
}

std::optional<TenantId> Leases::TenantOf(SessionId session) const {
  const auto found = holders_.find(session);
  if (found == holders_.end()) return std::nullopt;
  return found->second.tenant;
}

void Leases::Add(SessionId session, LeasedBlock leased) {
  Holder& holder = holders_.find(session)->second;
  holder.bytes += leased.block.bytes();
  const BlockId id = leased.block.id;
  holder.blocks.emplace(id, std::move(leased));
}

const LeasedBlock* Leases::Find(SessionId session, BlockId block) const {
  const auto holder = holders_.find(session);
  if (holder == holders_.end()) return nullptr;
  const auto found = holder->second.blocks.find(block);
  return found == holder->second.blocks.end() ? nullptr : &found->second;
}

LeasedBlock Leases::Take(SessionId session, BlockId block) {
  Holder& holder = holders_.find(session)->second;
  auto node = holder.blocks.extract(block);
  holder.bytes -= node.mapped().block.bytes();
  return std::move(node.mapped());
}

HolderStats Leases::Holdings(SessionId session) const {
  HolderStats stats;
  const auto found = holders_.find(session);
  if (found == holders_.end()) return stats;
  stats.leased_blocks = found->second.blocks.size();
  stats.leased_bytes = found->second.bytes;
  return stats;
}

}  // namespace heapbroker

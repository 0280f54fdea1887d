// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/leases.h"

#include <utility>

namespace heapbroker {

void Leases::AddHolder(SessionId session, TenantId tenant) {
  if (holders_.try_emplace(session, Holder{tenant, {}, {}, {}}).second) {
    holders_of_[tenant].insert(session);
  }
}

std::vector<LeasedBlock> Leases::RemoveHolder(SessionId session) {
  std::vector<LeasedBlock> left;
  const auto found = holders_.find(session);
  if (found == holders_.end()) return left;
  for (auto& [id, leased] : found->second.blocks) {
    holder_of_.erase(id);
    left.push_back(std::move(leased));
  }
  const auto holders = holders_of_.find(found->second.tenant);
  holders->second.erase(session);
  if (holders->second.empty()) holders_of_.erase(holders);
  holders_.erase(found);
  return left;
}

std::optional<TenantId> Leases::TenantOf(SessionId session) const {
  const auto found = holders_.find(session);
  if (found == holders_.end()) return std::nullopt;
  return found->second.tenant;
}

std::vector<SessionId> Leases::HoldersOf(TenantId tenant) const {
  const auto found = holders_of_.find(tenant);
  if (found == holders_of_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Leases::Add(SessionId session, LeasedBlock leased) {
  Holder& holder = holders_.find(session)->second;
  Count(holder, leased.block);
  const BlockId id = leased.block.id;
  holder_of_.emplace(id, session);
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
  const auto found = holder.blocks.find(block);
  LeasedBlock leased = std::move(found->second);
  holder.blocks.erase(found);
  holder_of_.erase(block);
  Uncount(holder, leased.block);
  return leased;
}

HolderStats Leases::Holdings(SessionId session) const {
  HolderStats stats;
  const auto found = holders_.find(session);
  if (found == holders_.end()) return stats;
  stats.leased_blocks = found->second.blocks.size();
  stats.leased_bytes = found->second.bytes;
  return stats;
}

Bytes Leases::HeldOf(SessionId session, uint32_t memory_type) const {
  const auto holder = holders_.find(session);
  if (holder == holders_.end()) return Bytes();
  const auto found = holder->second.by_type.find(memory_type);
  return found == holder->second.by_type.end() ? Bytes() : found->second;
}

void Leases::List(BlockId after, size_t limit, Visitor visit) const {
  for (auto it = holder_of_.upper_bound(after); it != holder_of_.end() && limit > 0; ++it) {
    const Holder& holder = holders_.find(it->second)->second;
    visit(it->second, holder.tenant, holder.blocks.find(it->first)->second);
    --limit;
  }
}

void Leases::Count(Holder& holder, const Block& block) {
  holder.bytes += block.bytes();
  holder.by_type[block.block_class.memory_type] += block.bytes();
}

void Leases::Uncount(Holder& holder, const Block& block) {
  holder.bytes -= block.bytes();
  holder.by_type[block.block_class.memory_type] -= block.bytes();
}

}  // namespace heapbroker

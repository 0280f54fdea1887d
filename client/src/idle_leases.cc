// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/idle_leases.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace heapbroker {

IdleLeases::Blocks::iterator IdleLeases::Move(Blocks::iterator from, std::vector<Block>& to) {
  bytes_ -= from->block->bytes;
  to.push_back(std::move(from->block));
  return blocks_.erase(from);
}

std::vector<IdleLeases::Block> IdleLeases::Put(Block block, Time now, Bytes max_bytes) {
  // One that is too large by itself need not drive the others out.
  if (block->bytes > max_bytes) {
    std::vector<Block> too_large;
    too_large.push_back(std::move(block));
    return too_large;
  }
  bytes_ += block->bytes;
  blocks_.push_back({std::move(block), now});
  return TakeDownTo(max_bytes);
}

IdleLeases::Block IdleLeases::Take(const std::string& kind, Bytes size) {
  auto best = blocks_.end();
  for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
    if (it->block->kind != kind || it->block->size < size) continue;
    if (best == blocks_.end() || it->block->size <= best->block->size) best = it;
  }
  if (best == blocks_.end()) return nullptr;
  std::vector<Block> taken;
  Move(best, taken);
  return std::move(taken.front());
}

std::vector<IdleLeases::Block> IdleLeases::TakeDownTo(Bytes target) {
  std::vector<Block> taken;
  while (bytes_ > target) Move(blocks_.begin(), taken);
  return taken;
}

std::vector<IdleLeases::Block> IdleLeases::TakeFrom(Time since) {
  std::vector<Block> taken;
  while (!blocks_.empty() && blocks_.front().since <= since) Move(blocks_.begin(), taken);
  return taken;
}

std::vector<IdleLeases::Block> IdleLeases::TakeOf(uint32_t device_index, uint32_t heap_index,
                                                  Bytes bytes) {
  Bytes sum;
  return TakeIf([&](const LeasedMemory& memory) {
    if (sum >= bytes || !memory.IsOf(device_index, heap_index)) return false;
    sum += memory.bytes;
    return true;
  });
}

std::vector<IdleLeases::Block> IdleLeases::TakeIf(
    absl::FunctionRef<bool(const LeasedMemory&)> goes) {
  std::vector<Block> taken;
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    it = goes(*it->block) ? Move(it, taken) : std::next(it);
  }
  return taken;
}

std::optional<IdleLeases::Time> IdleLeases::oldest() const {
  return blocks_.empty() ? std::nullopt : std::optional<Time>(blocks_.front().since);
}

std::vector<IdleMemory> IdleLeases::Report() const {
  std::map<std::pair<uint32_t, uint32_t>, Bytes> by_heap;
  for (const Idle& idle : blocks_) {
    by_heap[{idle.block->device_index, idle.block->heap_index}] += idle.block->bytes;
  }
  std::vector<IdleMemory> report;
  for (const auto& [heap, bytes] : by_heap) {
    report.push_back({.device_index = heap.first, .heap_index = heap.second, .bytes = bytes});
  }
  return report;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of ReferenceModel that tells IdleModel what happened.
#include <algorithm>
#include <utility>

#include "daemon/core/memory_type_choice.h"
#include "tests/model/reference_model.h"

namespace heapbroker {

bool ReferenceModel::NonePromised() const {
  size_t queued = 0;
  for (const HeapStats& heap : stats_.heaps) queued += heap.waiting_requests;
  return Orders().size() == SureFills() + queued;
}

IdleModel::Block ReferenceModel::IdleBlockOf(DeviceAllocationId id) const {
  const Memory& memory = memory_.at(id);
  return {id,           *memory.pool,    *memory.tenant, memory.block_class, memory.made_for,
          memory.bytes, memory.released, memory.aged};
}

IdleModel::Request ReferenceModel::IdleRequestOf(const Call& call) const {
  const AllocateRequest& asked = std::get<AllocateCall>(call.what).request;
  IdleModel::Request request;
  request.tenant = call.tenant;
  for (size_t i = 0; i < asked.blocks.size(); ++i) {
    const BlockRequest& block = asked.blocks[i];
    IdleModel::Request::Want& want = request.wants.emplace_back();
    want.size = block.size;
    want.exact = call.needs[i].bytes;
    want.block_class.device_address = block.device_address;
    want.block_class.dedicated = block.dedicated;
    const auto types = ChooseMemoryTypes(device_, block.memory, block.handle_type);
    if (types.ok()) want.block_class.handle_type = types->handle_type;
    want.types = call.needs[i].types;
    want.transient = block.transient;
    want.zeroed = block.zeroed;
  }
  return request;
}

std::optional<std::vector<IdleModel::Block>> ReferenceModel::AllIdle(const DeviceStats& stats,
                                                                     const Outside& outside) {
  size_t queued = 0;
  for (const HeapStats& heap : stats.heaps) queued += heap.waiting_requests;
  if (outside.fills + outside.frees > 0 || Orders().size() != queued) return std::nullopt;
  std::vector<IdleModel::Block> all;
  for (const auto& [id, memory] : memory_) {
    if (memory.held || memory.retired) continue;
    // Nobody has had it yet: of an order that was not wanted any more.
    if (!memory.tenant) return std::nullopt;
    all.push_back(IdleBlockOf(id));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.age < b.age; });
  return all;
}

void ReferenceModel::CheckIdle(const DeviceStats& stats, const Outside& outside) {
  if (stats_.pools.empty()) stats_ = stats;  // The first.
  IdleModel::Context context;
  for (const auto& [session, tenant] : tenants_) context.tenants.insert(tenant);
  context.tenants_changed = tenants_changed_;
  context.gave_up = std::any_of(refused_.begin(), refused_.end(),
                                [](const RefusedCall& refused) { return !refused.at_once; });
  context.driver_asked = heaps_read_;
  uint64_t lost_hits = 0;
  for (const PoolStats& pool : stats.pools) lost_hits += pool.hits;
  lost_hits -= seen_.reuses;
  context.gave_up |= std::exchange(lost_hits_, lost_hits) != lost_hits ||
                     stats_.requests.cancelled != stats.requests.cancelled;
  // What an order gave back that came to nothing is younger than its last lease says,
  // and nobody can tell which blocks those are.
  for (auto& [id, memory] : memory_) memory.aged &= !context.gave_up || memory.held;
  const auto order = [&](const Call& call) {
    for (const Need& need : call.needs) {
      context.ordered_heaps.insert(need.heaps.begin(), need.heaps.end());
    }
  };
  for (const auto& [id, call] : calls_) order(call);
  for (const Call& call : ended_) order(call);
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) {
    // The driver offers less than is in use: what is idle there goes, as well.
    if (stats_.heaps[heap].in_use > NowOn(heap)) context.ordered_heaps.insert(heap);
  }
  context.all = AllIdle(stats, outside);
  idle_.Check(stats_, stats, context);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_stats.h"

#include <optional>

#include "daemon/messages/device_message.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/convert_refusal.h"
#include "daemon/rpc/convert_time.h"

namespace heapbroker {
namespace {

void FillHeap(const HeapStats& heap, v1::HeapStats& out) {
  out.set_size(heap.info.size.count());
  out.set_device_local(heap.info.device_local);
  out.set_budget(heap.budget.count());
  out.set_in_use(heap.in_use.count());
  out.set_peak_in_use(heap.peak_in_use.count());
  out.set_available(heap.available.count());
  if (heap.driver.has_value()) {
    out.set_driver_budget(heap.driver->budget.count());
    out.set_driver_usage(heap.driver->usage.count());
  }
  if (heap.others_in_use.has_value()) out.set_others_in_use(heap.others_in_use->count());
  out.set_idle_in_clients(heap.idle_in_clients.count());
  out.set_waiting_requests(heap.waiting_requests);
  if (heap.smallest_driver_refusal.has_value()) {
    out.set_smallest_driver_refusal(heap.smallest_driver_refusal->count());
  }
}

void FillReasons(const PoolStats& pool, v1::PoolStatsRow& out) {
  const auto missed = [&](MissReason reason) { return pool.misses[static_cast<size_t>(reason)]; };
  v1::MissReasons& misses = *out.mutable_miss_reasons();
  misses.set_no_idle_block(missed(MissReason::kNoIdleBlock));
  misses.set_only_too_small(missed(MissReason::kOnlyTooSmall));
  misses.set_only_too_large(missed(MissReason::kOnlyTooLarge));
  misses.set_at_capacity(missed(MissReason::kAtCapacity));
  misses.set_over_size_limit(missed(MissReason::kOverSizeLimit));
  misses.set_other_tenants_only(missed(MissReason::kOtherTenantsOnly));
  misses.set_never_cached(missed(MissReason::kNeverCached));

  const auto dropped = [&](NotKeptReason reason) {
    return pool.not_kept[static_cast<size_t>(reason)];
  };
  v1::NotKeptReasons& not_kept = *out.mutable_not_kept();
  not_kept.set_count(dropped(NotKeptReason::kCount));
  not_kept.set_capacity(dropped(NotKeptReason::kCapacity));
  not_kept.set_ttl(dropped(NotKeptReason::kTtl));
  not_kept.set_trim(dropped(NotKeptReason::kTrim));
  not_kept.set_pressure(dropped(NotKeptReason::kPressure));
  not_kept.set_unclean_end(dropped(NotKeptReason::kUncleanEnd));
  not_kept.set_never_cached(dropped(NotKeptReason::kNeverCached));
}

void FillLimits(const PoolLimits& limits, v1::PoolLimits& out) {
  out.set_max_free_allocation_count(limits.max_free_allocation_count);
  out.set_max_allocation_size(limits.max_allocation_size.count());
  out.set_max_allocation_capacity(limits.max_allocation_capacity.count());
}

void FillRequests(const RequestTotals& requests, v1::RequestTotals& out) {
  out.set_granted(requests.granted);
  out.set_queued(requests.queued);
  out.set_never_fit(requests.never_fit);
  out.set_limit_reached(requests.limit_reached);
  out.set_failed(requests.failed);
  out.set_cancelled(requests.cancelled);
}

void FillPool(const PoolStats& pool, const DeviceInfo& device, v1::PoolStatsRow& out) {
  out.set_name(pool.name);
  if (pool.memory_type.has_value()) {
    out.set_memory_property_flags(device.memory_types[*pool.memory_type].property_flags);
  }
  out.set_reserved_bytes(pool.reserved.count());
  out.set_leased_bytes(pool.leased.count());
  out.set_idle_bytes(pool.idle.count());
  out.set_being_freed_bytes(pool.being_freed.count());
  out.set_peak_leased_bytes(pool.peak_leased.count());
  out.set_peak_idle_bytes(pool.peak_idle.count());
  out.set_peak_total_bytes(pool.peak_total.count());
  out.set_largest_idle_block_bytes(pool.largest_idle_block.count());
  out.set_rounding_bytes(pool.rounding.count());
  out.set_leased_blocks(pool.leased_blocks);
  out.set_idle_blocks(pool.idle_blocks);
  out.set_requests(pool.requests);
  out.set_hits(pool.hits);
  out.set_misses(pool.total_misses());
  FillReasons(pool, out);
  FillLimits(pool.limits, *out.mutable_limits());
}

v1::SegmentInfo::State StateMessage(SegmentState state) {
  switch (state) {
    case SegmentState::kFilling:
      return v1::SegmentInfo::STATE_FILLING;
    case SegmentState::kSealed:
      return v1::SegmentInfo::STATE_SEALED;
    case SegmentState::kUnused:
      return v1::SegmentInfo::STATE_UNUSED;
  }
  return v1::SegmentInfo::STATE_UNSPECIFIED;
}

}  // namespace

v1::DeviceStats DeviceStatsMessage(const DeviceStats& stats) {
  v1::DeviceStats message;
  *message.mutable_device() = DeviceMessage(stats.device);
  for (const HeapStats& heap : stats.heaps) FillHeap(heap, *message.add_heaps());
  for (const PoolStats& pool : stats.pools) FillPool(pool, stats.device, *message.add_pools());
  message.set_allocations(stats.allocations);
  message.set_max_allocations(stats.max_allocations);
  message.set_segments(stats.segments);
  message.set_segment_bytes(stats.segment_bytes.count());
  for (const CountLimit& limit : stats.count_limits) {
    v1::CountLimit& out = *message.add_count_limits();
    out.set_limit(LimitMessage(limit.kind));
    out.set_blocks(limit.blocks);
  }
  FillRequests(stats.requests, *message.mutable_requests());
  return message;
}

v1::SessionInfo SessionMessage(const Session& session, const HolderStats& holdings, Names names) {
  v1::SessionInfo message;
  message.set_session_id(session.id.value());
  if (names == Names::kShown) {
    message.set_name(session.identity.name);
    message.set_pid(session.identity.pid);
  }
  message.set_uid(session.identity.uid);
  message.set_gid(session.identity.gid);
  message.set_observer(session.identity.observer);
  *message.mutable_start_time() = TimestampMessage(session.start_time);
  message.set_leased_blocks(holdings.leased_blocks);
  message.set_leased_bytes(holdings.leased_bytes.count());
  message.set_attached_segments(holdings.attached_segments);
  return message;
}

v1::LeaseInfo LeaseMessage(const LeaseStats& lease) {
  v1::LeaseInfo message;
  message.set_block_id(lease.block.value());
  message.set_session_id(lease.session.value());
  message.set_uid(lease.tenant.uid());
  message.set_device_index(DeviceIndexOf(lease.block));
  message.set_memory_type_index(lease.block_class.memory_type);
  message.set_handle_type(HandleTypeMessage(lease.block_class.handle_type));
  message.set_pool(lease.pool);
  message.set_size(lease.size.count());
  message.set_allocated_bytes(lease.allocated.count());
  *message.mutable_start_time() = TimestampMessage(lease.since);
  return message;
}

v1::SegmentInfo SegmentMessage(const SegmentStats& segment, uint32_t device_index, Names names) {
  v1::SegmentInfo message;
  message.set_segment_id(segment.id.value());
  if (names == Names::kShown) message.set_name(segment.name);
  message.set_uid(segment.tenant.uid());
  message.set_state(StateMessage(segment.state));
  message.set_size(segment.size.count());
  message.set_allocated_bytes(segment.allocated.count());
  message.set_blocks(segment.blocks);
  message.set_attached_sessions(segment.attached_sessions);
  message.set_waiting_calls(segment.waiting_calls);
  if (segment.checksum.has_value()) {
    *message.mutable_checksum() = ChecksumMessage(*segment.checksum);
  }
  message.set_device_index(device_index);
  return message;
}

}  // namespace heapbroker

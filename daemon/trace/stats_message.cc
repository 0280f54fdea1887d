// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/header_message.h"

namespace heapbroker {
namespace {

v1::TraceStats::Pool PoolMessage(const PoolStats& pool) {
  v1::TraceStats::Pool message;
  message.set_name(pool.name);
  message.set_reserved(pool.reserved.count());
  message.set_leased(pool.leased.count());
  message.set_idle(pool.idle.count());
  message.set_being_freed(pool.being_freed.count());
  message.set_peak_leased(pool.peak_leased.count());
  message.set_peak_idle(pool.peak_idle.count());
  message.set_peak_total(pool.peak_total.count());
  message.set_largest_idle_block(pool.largest_idle_block.count());
  message.set_rounding(pool.rounding.count());
  message.set_leased_blocks(pool.leased_blocks);
  message.set_idle_blocks(pool.idle_blocks);
  message.set_requests(pool.requests);
  message.set_hits(pool.hits);
  message.mutable_misses()->Add(pool.misses.begin(), pool.misses.end());
  message.mutable_not_kept()->Add(pool.not_kept.begin(), pool.not_kept.end());
  return message;
}

}  // namespace

v1::TraceStats StatsMessage(const DeviceStats& stats) {
  v1::TraceStats message;
  for (const HeapStats& heap : stats.heaps) {
    v1::TraceStats::Heap* const one = message.add_heaps();
    one->set_budget(heap.budget.count());
    one->set_in_use(heap.in_use.count());
    one->set_peak_in_use(heap.peak_in_use.count());
    one->set_idle_in_clients(heap.idle_in_clients.count());
    one->set_waiting_requests(heap.waiting_requests);
  }
  for (const PoolStats& pool : stats.pools) *message.add_pools() = PoolMessage(pool);
  message.set_allocations(stats.allocations);
  message.set_segments(stats.segments);
  message.set_segment_bytes(stats.segment_bytes.count());
  message.set_granted(stats.requests.granted);
  message.set_queued(stats.requests.queued);
  message.set_never_fit(stats.requests.never_fit);
  message.set_limit_reached(stats.requests.limit_reached);
  message.set_failed(stats.requests.failed);
  message.set_cancelled(stats.requests.cancelled);
  return message;
}

}  // namespace heapbroker

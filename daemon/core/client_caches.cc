// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/client_caches.h"

#include <algorithm>

namespace heapbroker {

void ClientCaches::Report(SessionId session, absl::Span<const IdleReport> reports) {
  for (uint32_t i = 0; i < heaps_.size(); ++i) {
    const auto named = std::find_if(reports.begin(), reports.end(),
                                    [i](const IdleReport& report) { return report.heap == i; });
    Set(heaps_[i], session, named == reports.end() ? Bytes() : named->bytes);
  }
}

void ClientCaches::Cap(SessionId session, uint32_t heap, Bytes most) {
  const auto found = heaps_[heap].caches.find(session);
  if (found != heaps_[heap].caches.end() && found->second.bytes > most) {
    Set(heaps_[heap], session, most);
  }
}

void ClientCaches::Set(Heap& heap, SessionId session, Bytes bytes) {
  const auto found = heap.caches.find(session);
  if (found == heap.caches.end() && bytes == Bytes()) return;
  Cache& cache = found == heap.caches.end() ? heap.caches[session] : found->second;
  heap.by_size.erase({cache.bytes, session});
  heap.total -= cache.bytes;
  heap.total += bytes;
  // What it does not have any more was what it was asked for, as far as that goes.
  if (bytes < cache.bytes) cache.asked -= std::min(cache.asked, cache.bytes - bytes);
  cache.bytes = bytes;
  if (bytes == Bytes()) {
    heap.caches.erase(session);
  } else {
    heap.by_size.insert({bytes, session});
  }
}

std::vector<ClientCaches::Ask> ClientCaches::ChooseWhomToAsk(uint32_t heap, Bytes bytes,
                                                             absl::Time now, absl::Time until) {
  std::vector<Ask> asks;
  const auto& by_size = heaps_[heap].by_size;
  for (auto it = by_size.rbegin(); it != by_size.rend() && bytes > Bytes(); ++it) {
    Cache& cache = heaps_[heap].caches.find(it->second)->second;
    const Bytes wanted = std::min(bytes, cache.askable(now));
    if (wanted == Bytes()) continue;
    if (cache.asked_until <= now) cache.asked = Bytes();
    cache.asked += wanted;
    cache.asked_until = until;
    asks.push_back({it->second, wanted});
    bytes -= wanted;
  }
  return asks;
}

Bytes ClientCaches::AskableOn(uint32_t heap, absl::Time now) const {
  Bytes sum;
  for (const auto& [session, cache] : heaps_[heap].caches) sum += cache.askable(now);
  return sum;
}

absl::Time ClientCaches::NextAskable(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const Heap& heap : heaps_) {
    for (const auto& [session, cache] : heap.caches) {
      if (cache.askable(now) < cache.bytes) next = std::min(next, cache.asked_until);
    }
  }
  return next;
}

Bytes ClientCaches::Cache::askable(absl::Time now) const {
  return asked_until <= now ? bytes : bytes - std::min(bytes, asked);
}

}  // namespace heapbroker

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
    if (cache.asked_until > now) continue;
    cache.asked_until = until;
    const Bytes wanted = std::min(bytes, cache.bytes);
    asks.push_back({it->second, wanted});
    bytes -= wanted;
  }
  return asks;
}

Bytes ClientCaches::AskableOn(uint32_t heap, absl::Time now) const {
  Bytes sum;
  for (const auto& [session, cache] : heaps_[heap].caches) {
    if (cache.asked_until <= now) sum += cache.bytes;
  }
  return sum;
}

}  // namespace heapbroker

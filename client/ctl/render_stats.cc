// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/render.h"
#include "client/ctl/table.h"
#include "common/base/text.h"
#include "heapbroker/units.h"

namespace heapbroker {
namespace {

using Align = Table::Align;

constexpr char kIndent[] = "  ";

std::string Number(uint64_t value) { return absl::StrCat(value); }
std::string Size(uint64_t bytes) { return FormatBytes(Bytes(bytes)); }

std::string TypeName(v1::DeviceType type) {
  switch (type) {
    case v1::DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated GPU";
    case v1::DEVICE_TYPE_DISCRETE_GPU:
      return "discrete GPU";
    case v1::DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual GPU";
    case v1::DEVICE_TYPE_CPU:
      return "CPU";
    default:
      return "other";
  }
}

uint64_t NotKept(const v1::NotKeptReasons& reasons) {
  return reasons.count() + reasons.pressure() + reasons.unclean_end() + reasons.never_cached();
}

// "3 (2 over count, 1 pressure)".
std::string NotKeptText(const v1::NotKeptReasons& reasons) {
  std::vector<std::string> parts;
  const auto add = [&parts](uint64_t count, absl::string_view why) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", why));
  };
  add(reasons.count(), "over count");
  add(reasons.pressure(), "pressure");
  add(reasons.unclean_end(), "unclean end");
  add(reasons.never_cached(), "never cached");
  if (parts.empty()) return "0";
  return absl::StrCat(NotKept(reasons), " (", absl::StrJoin(parts, ", "), ")");
}

// Requests that a cache could have served are the whole: the direct row has no
// rate, and its large blocks do not spoil the total's.
std::string HitRate(const v1::PoolStatsRow& row) {
  const uint64_t beyond = std::min(row.miss_reasons().never_cached(), row.requests());
  return FormatRate(row.hits(), row.requests() - beyond);
}

v1::PoolStatsRow Total(const v1::DeviceStats& device) {
  v1::PoolStatsRow total;
  total.set_name("total");
  for (const v1::PoolStatsRow& row : device.pools()) {
    total.set_reserved_bytes(total.reserved_bytes() + row.reserved_bytes());
    total.set_leased_bytes(total.leased_bytes() + row.leased_bytes());
    total.set_idle_bytes(total.idle_bytes() + row.idle_bytes());
    total.set_being_freed_bytes(total.being_freed_bytes() + row.being_freed_bytes());
    total.set_leased_blocks(total.leased_blocks() + row.leased_blocks());
    total.set_idle_blocks(total.idle_blocks() + row.idle_blocks());
    total.set_requests(total.requests() + row.requests());
    total.set_hits(total.hits() + row.hits());
    total.set_misses(total.misses() + row.misses());
    v1::MissReasons& misses = *total.mutable_miss_reasons();
    misses.set_never_cached(misses.never_cached() + row.miss_reasons().never_cached());
    const v1::NotKeptReasons& reasons = row.not_kept();
    v1::NotKeptReasons& sum = *total.mutable_not_kept();
    sum.set_count(sum.count() + reasons.count());
    sum.set_pressure(sum.pressure() + reasons.pressure());
    sum.set_unclean_end(sum.unclean_end() + reasons.unclean_end());
    sum.set_never_cached(sum.never_cached() + reasons.never_cached());
  }
  return total;
}

std::string RenderHeaps(const v1::DeviceStats& device) {
  Table table({{"heap", Align::kLeft},
               {"size"},
               {"budget"},
               {"in use"},
               {"peak"},
               {"of budget"},
               {"where", Align::kLeft}});
  for (int i = 0; i < device.heaps_size(); ++i) {
    const v1::HeapStats& heap = device.heaps(i);
    table.AddRow({absl::StrCat(i), Size(heap.size()), Size(heap.budget()), Size(heap.in_use()),
                  Size(heap.peak_in_use()), FormatRate(heap.in_use(), heap.budget()),
                  heap.device_local() ? "device" : "host"});
  }
  return table.Render(kIndent);
}

std::vector<v1::PoolStatsRow> RowsAndTotal(const v1::DeviceStats& device) {
  std::vector<v1::PoolStatsRow> rows(device.pools().begin(), device.pools().end());
  rows.push_back(Total(device));
  return rows;
}

// What the pools hold now.
std::string RenderHoldings(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"pool", Align::kLeft},
               {"reserved"},
               {"leased"},
               {"idle"},
               {"being freed"},
               {"leased blocks"},
               {"idle blocks"}});
  for (const v1::PoolStatsRow& row : rows) {
    table.AddRow({Printable(row.name()), Size(row.reserved_bytes()), Size(row.leased_bytes()),
                  Size(row.idle_bytes()), Size(row.being_freed_bytes()),
                  Number(row.leased_blocks()), Number(row.idle_blocks())});
  }
  return table.Render(kIndent);
}

// How well they served since the daemon started.
std::string RenderTraffic(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"pool", Align::kLeft},
               {"requests"},
               {"hits"},
               {"misses"},
               {"hit rate"},
               {"not kept", Align::kLeft}});
  for (const v1::PoolStatsRow& row : rows) {
    table.AddRow({Printable(row.name()), Number(row.requests()), Number(row.hits()),
                  Number(row.misses()), HitRate(row), NotKeptText(row.not_kept())});
  }
  return table.Render(kIndent);
}

std::string RenderDevice(const v1::DeviceStats& stats) {
  const v1::Device& device = stats.device();
  std::string text =
      absl::StrCat("device ", device.index(), ": ", Printable(device.name()), ", ",
                   TypeName(device.type()), device.software() ? " [software]" : "", "\n");
  if (device.software()) {
    absl::StrAppend(&text, kIndent,
                    "software: runs on the CPU and is no boundary between its users\n");
  }
  absl::StrAppend(&text, kIndent, "driver ",
                  device.driver_info().empty() ? "unknown" : Printable(device.driver_info()), "\n",
                  kIndent, stats.allocations(), " of ", stats.max_allocations(), " allocations, ",
                  stats.segments(), stats.segments() == 1 ? " segment of " : " segments of ",
                  Size(stats.segment_bytes()), "\n\n");
  const std::vector<v1::PoolStatsRow> rows = RowsAndTotal(stats);
  absl::StrAppend(&text, RenderHeaps(stats), "\n", RenderHoldings(rows), "\n", RenderTraffic(rows));
  return text;
}

}  // namespace

std::string RenderStats(const v1::GetStatsResponse& stats, absl::Time now) {
  const absl::Time start = absl::FromUnixSeconds(stats.start_time().seconds()) +
                           absl::Nanoseconds(stats.start_time().nanos());
  std::string text = absl::StrCat(
      "heapbrokerd ", Printable(stats.version()), ", up ", FormatAge(now - start),
      "\nsessions: ", stats.client_sessions(),
      stats.client_sessions() == 1 ? " client, " : " clients, ", stats.observer_sessions(),
      stats.observer_sessions() == 1 ? " observer" : " observers",
      "\ndescriptors: ", stats.open_descriptors(), " of ", stats.max_descriptors(), "\n");
  for (const v1::DeviceStats& device : stats.devices()) {
    absl::StrAppend(&text, "\n", RenderDevice(device));
  }
  return text;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/cells.h"
#include "client/ctl/pool_rows.h"
#include "client/ctl/render.h"
#include "client/ctl/table.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

using Align = Table::Align;
using Show = Table::Show;

// "36 requests granted, 2 waited", and a line for those that were refused.
std::string RequestsText(const v1::RequestTotals& requests) {
  std::string text = absl::StrCat(kIndent, Count(requests.granted(), "request"), " granted");
  if (requests.queued() > 0) absl::StrAppend(&text, ", ", requests.queued(), " waited");
  std::vector<std::string> refused;
  const auto add = [&refused](uint64_t count, absl::string_view why) {
    if (count > 0) refused.push_back(absl::StrCat(count, " ", why));
  };
  add(requests.never_fit(), "can never fit");
  add(requests.limit_reached(), "at a limit");
  add(requests.failed(), "by the device");
  if (requests.cancelled() > 0) absl::StrAppend(&text, ", ", requests.cancelled(), " cancelled");
  text += "\n";
  if (!refused.empty()) {
    absl::StrAppend(&text, kIndent, "refused: ", absl::StrJoin(refused, ", "), "\n");
  }
  return text;
}

std::string HeapsText(const v1::DeviceStats& device) {
  Table table({{"heap", Align::kLeft},
               {"where", Align::kLeft},
               {"budget"},
               {"in use"},
               {"of budget"},
               {"free now"},
               {"others", Align::kRight, Show::kWhereUsed},
               {"waiting", Align::kRight, Show::kWhereUsed}});
  for (int i = 0; i < device.heaps_size(); ++i) {
    const v1::HeapStats& heap = device.heaps(i);
    table.AddRow({absl::StrCat(i), heap.device_local() ? "device" : "host", Size(heap.budget()),
                  Size(heap.in_use()), FormatRate(heap.in_use(), heap.budget()),
                  Size(heap.available()),
                  heap.has_others_in_use() ? Size(heap.others_in_use()) : "-",
                  Number(heap.waiting_requests())});
  }
  return table.Render(kIndent);
}

// What the pools hold now.
std::string HoldingsText(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"pool", Align::kLeft},
               {"reserved", Align::kRight, Show::kWhereUsed},
               {"leased"},
               {"idle"},
               {"being freed", Align::kRight, Show::kWhereUsed},
               {"leased blocks"},
               {"idle blocks"}});
  for (const v1::PoolStatsRow& row : rows) {
    table.AddRow({PoolCell(row.name()), Size(row.reserved_bytes()), Size(row.leased_bytes()),
                  Size(row.idle_bytes()), Size(row.being_freed_bytes()),
                  Number(row.leased_blocks()), Number(row.idle_blocks())});
  }
  return table.Render(kIndent);
}

// How well they served since the daemon started.
std::string TrafficText(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"pool", Align::kLeft},
               {"requests"},
               {"hits"},
               {"misses"},
               {"hit rate"},
               {"not kept", Align::kLeft}});
  for (const v1::PoolStatsRow& row : rows) {
    table.AddRow({PoolCell(row.name()), Number(row.requests()), Number(row.hits()),
                  Number(row.misses()), HitRate(row), NotKeptText(row.not_kept())});
  }
  return table.Render(kIndent);
}

// A sentence for each pool that will soon send its requests elsewhere.
std::string NearlyFullText(const v1::DeviceStats& device) {
  std::string text;
  for (const v1::PoolStatsRow& row : device.pools()) {
    const v1::PoolLimits* const limits = LimitsOf(row);
    if (limits == nullptr) continue;
    const uint64_t capacity = limits->max_allocation_capacity();
    const uint64_t held = row.reserved_bytes() + row.leased_bytes() + row.idle_bytes();
    // No limit is a number, too: nothing comes near it.
    if (held == 0 || held < capacity - capacity / 10) continue;
    absl::StrAppend(&text, kIndent, PoolCell(row.name()), " has ", Size(held), " of the ",
                    Size(capacity), " that it may\n");
  }
  return text;
}

std::string DeviceText(const v1::DeviceStats& stats) {
  const v1::Device& device = stats.device();
  std::string text = DeviceHeadline(device);
  absl::StrAppend(&text, kIndent, "driver ",
                  device.driver_info().empty() ? "unknown" : Printable(device.driver_info()), "\n",
                  kIndent, AllocationsText(stats), "\n", kIndent,
                  Count(stats.segments(), "segment"), " of ", Size(stats.segment_bytes()), "\n");
  if (stats.has_requests()) text += RequestsText(stats.requests());
  const std::vector<v1::PoolStatsRow> rows = RowsAndTotal(stats);
  absl::StrAppend(&text, "\n", HeapsText(stats), "\n", HoldingsText(rows), NearlyFullText(stats),
                  "\n", TrafficText(rows));
  return text;
}

}  // namespace

std::string RenderStats(const v1::GetStatsResponse& stats, absl::Time now) {
  std::string text = absl::StrCat("heapbrokerd ", Printable(stats.version()), ", up ",
                                  FormatAge(now - ToTime(stats.start_time())),
                                  "\nsessions: ", Count(stats.client_sessions(), "client"), ", ",
                                  Count(stats.observer_sessions(), "observer"),
                                  "\ndescriptors: ", stats.open_descriptors(), " of ",
                                  stats.max_descriptors(), "\n");
  for (const v1::DeviceStats& device : stats.devices()) {
    absl::StrAppend(&text, "\n", DeviceText(device));
  }
  return text;
}

}  // namespace heapbroker

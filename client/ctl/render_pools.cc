// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/cells.h"
#include "client/ctl/pool_rows.h"
#include "client/ctl/render.h"
#include "client/ctl/table.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

using Align = Table::Align;
using Show = Table::Show;

// With the names in full, as `trim --pool` wants them.
std::string LimitsText(const v1::DeviceStats& device) {
  Table table(
      {{"pool", Align::kLeft}, {"serves up to"}, {"holds up to"}, {"keeps idle"}, {"peak"}});
  for (const v1::PoolStatsRow& row : device.pools()) {
    const v1::PoolLimits* const limits = LimitsOf(row);
    table.AddRow({Printable(row.name()),
                  limits != nullptr ? SizeLimit(limits->max_allocation_size()) : "-",
                  limits != nullptr ? SizeLimit(limits->max_allocation_capacity()) : "-",
                  limits != nullptr ? NumberLimit(limits->max_free_allocation_count()) : "-",
                  Size(row.peak_total_bytes())});
  }
  return table.Render(kIndent);
}

std::string HoldingsText(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"pool", Align::kLeft},
               {"leased"},
               {"blocks"},
               {"idle"},
               {"blocks"},
               {"largest idle", Align::kRight, Show::kWhereUsed},
               {"reserved", Align::kRight, Show::kWhereUsed},
               {"being freed", Align::kRight, Show::kWhereUsed}});
  for (const v1::PoolStatsRow& row : rows) {
    table.AddRow({PoolCell(row.name()), Size(row.leased_bytes()), Number(row.leased_blocks()),
                  Size(row.idle_bytes()), Number(row.idle_blocks()),
                  row.largest_idle_block_bytes() == 0 ? "-" : Size(row.largest_idle_block_bytes()),
                  Size(row.reserved_bytes()), Size(row.being_freed_bytes())});
  }
  return table.Render(kIndent);
}

std::string TrafficText(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"pool", Align::kLeft},
               {"requests"},
               {"hits"},
               {"misses"},
               {"hit rate"},
               {"rounding", Align::kRight, Show::kWhereUsed}});
  for (const v1::PoolStatsRow& row : rows) {
    table.AddRow({PoolCell(row.name()), Number(row.requests()), Number(row.hits()),
                  Number(row.misses()), HitRate(row), Size(row.rounding_bytes())});
  }
  return table.Render(kIndent);
}

// Empty where the table has nothing to say.
std::string TextWhereUsed(const Table& table) {
  return table.used() ? "\n" + table.Render(kIndent) : "";
}

std::string MissesText(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"missed by", Align::kLeft},
               {"none idle", Align::kRight, Show::kWhereUsed},
               {"too small", Align::kRight, Show::kWhereUsed},
               {"too large", Align::kRight, Show::kWhereUsed},
               {"others'", Align::kRight, Show::kWhereUsed},
               {"capacity", Align::kRight, Show::kWhereUsed},
               {"over size", Align::kRight, Show::kWhereUsed},
               {"uncached", Align::kRight, Show::kWhereUsed}});
  for (const v1::PoolStatsRow& row : rows) {
    const v1::MissReasons& why = row.miss_reasons();
    table.AddRow({PoolCell(row.name()), Number(why.no_idle_block()), Number(why.only_too_small()),
                  Number(why.only_too_large()), Number(why.other_tenants_only()),
                  Number(why.at_capacity()), Number(why.over_size_limit()),
                  Number(why.never_cached())});
  }
  return TextWhereUsed(table);
}

std::string KeepingText(const std::vector<v1::PoolStatsRow>& rows) {
  Table table({{"not kept by", Align::kLeft},
               {"count", Align::kRight, Show::kWhereUsed},
               {"capacity", Align::kRight, Show::kWhereUsed},
               {"idle time", Align::kRight, Show::kWhereUsed},
               {"trim", Align::kRight, Show::kWhereUsed},
               {"pressure", Align::kRight, Show::kWhereUsed},
               {"unclean end", Align::kRight, Show::kWhereUsed},
               {"uncached", Align::kRight, Show::kWhereUsed}});
  for (const v1::PoolStatsRow& row : rows) {
    const v1::NotKeptReasons& why = row.not_kept();
    table.AddRow({PoolCell(row.name()), Number(why.count()), Number(why.capacity()),
                  Number(why.ttl()), Number(why.trim()), Number(why.pressure()),
                  Number(why.unclean_end()), Number(why.never_cached())});
  }
  return TextWhereUsed(table);
}

}  // namespace

std::string RenderPools(const v1::GetStatsResponse& stats) {
  std::string text;
  for (const v1::DeviceStats& device : stats.devices()) {
    const std::vector<v1::PoolStatsRow> rows = RowsAndTotal(device);
    absl::StrAppend(&text, text.empty() ? "" : "\n", DeviceHeadline(device.device()), "\n",
                    LimitsText(device), "\n", HoldingsText(rows), "\n", TrafficText(rows),
                    MissesText(rows), KeepingText(rows));
  }
  return text;
}

}  // namespace heapbroker

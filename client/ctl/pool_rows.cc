// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/pool_rows.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/cells.h"

namespace heapbroker {
namespace {

void Add(v1::MissReasons& sum, const v1::MissReasons& reasons) {
  sum.set_no_idle_block(sum.no_idle_block() + reasons.no_idle_block());
  sum.set_only_too_small(sum.only_too_small() + reasons.only_too_small());
  sum.set_other_tenants_only(sum.other_tenants_only() + reasons.other_tenants_only());
  sum.set_never_cached(sum.never_cached() + reasons.never_cached());
  sum.set_only_too_large(sum.only_too_large() + reasons.only_too_large());
  sum.set_at_capacity(sum.at_capacity() + reasons.at_capacity());
  sum.set_over_size_limit(sum.over_size_limit() + reasons.over_size_limit());
}

void Add(v1::NotKeptReasons& sum, const v1::NotKeptReasons& reasons) {
  sum.set_count(sum.count() + reasons.count());
  sum.set_capacity(sum.capacity() + reasons.capacity());
  sum.set_ttl(sum.ttl() + reasons.ttl());
  sum.set_trim(sum.trim() + reasons.trim());
  sum.set_pressure(sum.pressure() + reasons.pressure());
  sum.set_unclean_end(sum.unclean_end() + reasons.unclean_end());
  sum.set_never_cached(sum.never_cached() + reasons.never_cached());
}

void Add(v1::PoolStatsRow& sum, const v1::PoolStatsRow& row) {
  sum.set_reserved_bytes(sum.reserved_bytes() + row.reserved_bytes());
  sum.set_leased_bytes(sum.leased_bytes() + row.leased_bytes());
  sum.set_idle_bytes(sum.idle_bytes() + row.idle_bytes());
  sum.set_being_freed_bytes(sum.being_freed_bytes() + row.being_freed_bytes());
  sum.set_rounding_bytes(sum.rounding_bytes() + row.rounding_bytes());
  sum.set_leased_blocks(sum.leased_blocks() + row.leased_blocks());
  sum.set_idle_blocks(sum.idle_blocks() + row.idle_blocks());
  sum.set_requests(sum.requests() + row.requests());
  sum.set_hits(sum.hits() + row.hits());
  sum.set_misses(sum.misses() + row.misses());
  Add(*sum.mutable_miss_reasons(), row.miss_reasons());
  Add(*sum.mutable_not_kept(), row.not_kept());
}

}  // namespace

std::vector<v1::PoolStatsRow> RowsAndTotal(const v1::DeviceStats& device) {
  std::vector<v1::PoolStatsRow> rows(device.pools().begin(), device.pools().end());
  v1::PoolStatsRow total;
  total.set_name("total");
  for (const v1::PoolStatsRow& row : device.pools()) Add(total, row);
  rows.push_back(std::move(total));
  return rows;
}

const v1::PoolLimits* LimitsOf(const v1::PoolStatsRow& row) {
  return row.has_limits() && row.name() != "direct" ? &row.limits() : nullptr;
}

std::string HitRate(const v1::PoolStatsRow& row) {
  const uint64_t beyond = std::min(row.miss_reasons().never_cached(), row.requests());
  return FormatRate(row.hits(), row.requests() - beyond);
}

std::string NotKeptText(const v1::NotKeptReasons& reasons) {
  const std::pair<uint64_t, const char*> all[] = {
      {reasons.count(), "over count"},         {reasons.capacity(), "over capacity"},
      {reasons.ttl(), "idle for long"},        {reasons.trim(), "trimmed"},
      {reasons.pressure(), "by pressure"},     {reasons.unclean_end(), "unclean end"},
      {reasons.never_cached(), "never cached"}};
  uint64_t sum = 0;
  for (const auto& [count, name] : all) sum += count;
  if (sum == 0) return "0";
  const auto* const most =
      std::max_element(std::begin(all), std::end(all),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  return absl::StrCat(sum, most->first == sum ? " " : ", most ", most->second);
}

std::string AllocationsText(const v1::DeviceStats& device) {
  std::string text =
      absl::StrCat(device.allocations(), " of ", device.max_allocations(), " allocations");
  std::vector<std::string> limits;
  for (const v1::CountLimit& limit : device.count_limits()) {
    limits.push_back(absl::StrCat(LimitName(limit.limit()), " ", NumberLimit(limit.blocks())));
  }
  if (!limits.empty()) absl::StrAppend(&text, " (", absl::StrJoin(limits, ", "), ")");
  return text;
}

}  // namespace heapbroker

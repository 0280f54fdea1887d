// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Rows of pools and what follows from them.
#ifndef CLIENT_CTL_POOL_ROWS_H_
#define CLIENT_CTL_POOL_ROWS_H_

#include <string>
#include <vector>

#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

// The device's rows, and last one named "total": their sum. It has no limits,
// peaks or largest block, which do not add up.
std::vector<v1::PoolStatsRow> RowsAndTotal(const v1::DeviceStats& device);

// What the pool may have and serve; null for the row `direct`, which is no pool.
const v1::PoolLimits* LimitsOf(const v1::PoolStatsRow& row);

// Requests that a cache could have served are the whole: the direct row has no
// rate, and its large blocks do not spoil the total's.
std::string HitRate(const v1::PoolStatsRow& row);

// "0", "3 over count", "5, most by pressure": RenderPools has them all.
std::string NotKeptText(const v1::NotKeptReasons& reasons);

// "14 of 1004 allocations (device 4064, descriptors 1004)".
std::string AllocationsText(const v1::DeviceStats& device);

}  // namespace heapbroker
#endif  // CLIENT_CTL_POOL_ROWS_H_

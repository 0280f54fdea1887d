// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/ctl/render.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kNoLimit = ~uint64_t{0};

void SetLimits(v1::PoolStatsRow& row, uint64_t size, uint64_t capacity, uint64_t count) {
  v1::PoolLimits& limits = *row.mutable_limits();
  limits.set_max_allocation_size(size);
  limits.set_max_allocation_capacity(capacity);
  limits.set_max_free_allocation_count(count);
}

v1::GetStatsResponse Stats() {
  v1::GetStatsResponse stats;
  v1::DeviceStats& device = *stats.add_devices();
  device.mutable_device()->set_name("NVIDIA L4");
  device.mutable_device()->set_type(v1::DEVICE_TYPE_DISCRETE_GPU);
  v1::PoolStatsRow& small = *device.add_pools();
  small.set_name("device_local (type 1)");
  SetLimits(small, 100 * kMiB, 1024 * kMiB, 10);
  small.set_leased_bytes(512 * kMiB);
  small.set_leased_blocks(9);
  small.set_idle_bytes(160 * kMiB);
  small.set_idle_blocks(4);
  small.set_largest_idle_block_bytes(64 * kMiB);
  small.set_rounding_bytes(11 * kMiB);
  small.set_peak_total_bytes(900 * kMiB);
  small.set_requests(1300);
  small.set_hits(1200);
  small.set_misses(100);
  small.mutable_miss_reasons()->set_no_idle_block(60);
  small.mutable_miss_reasons()->set_over_size_limit(40);
  small.mutable_not_kept()->set_count(3);
  small.mutable_not_kept()->set_ttl(5);
  v1::PoolStatsRow& large = *device.add_pools();
  large.set_name("device_local (type 1) #2");
  SetLimits(large, 1024 * kMiB, kNoLimit, 1);
  v1::PoolStatsRow& direct = *device.add_pools();
  direct.set_name("direct");
  direct.mutable_limits();
  direct.set_requests(40);
  direct.set_misses(40);
  direct.mutable_miss_reasons()->set_never_cached(40);
  return stats;
}

TEST(RenderPoolsTest, ShowsLimitsHoldingsAndReasons) {
  EXPECT_EQ(RenderPools(Stats()), R"(device 0: NVIDIA L4, discrete GPU

  pool                      serves up to  holds up to  keeps idle       peak
  device_local (type 1)        100.0 MiB      1.0 GiB          10  900.0 MiB
  device_local (type 1) #2       1.0 GiB            -           1        0 B
  direct                               -            -           -        0 B

  pool                       leased  blocks       idle  blocks  largest idle
  device_local (type 1)   512.0 MiB       9  160.0 MiB       4      64.0 MiB
  device_loc…(type 1) #2        0 B       0        0 B       0             -
  direct                        0 B       0        0 B       0             -
  total                   512.0 MiB       9  160.0 MiB       4             -

  pool                    requests  hits  misses  hit rate  rounding
  device_local (type 1)       1300  1200     100    92.3 %  11.0 MiB
  device_loc…(type 1) #2         0     0       0         -       0 B
  direct                        40     0      40         -       0 B
  total                       1340  1200     140    92.3 %  11.0 MiB

  missed by               none idle  over size  uncached
  device_local (type 1)          60         40         0
  device_loc…(type 1) #2          0          0         0
  direct                          0          0        40
  total                          60         40        40

  not kept by             count  idle time
  device_local (type 1)       3          5
  device_loc…(type 1) #2      0          0
  direct                      0          0
  total                       3          5
)");
}

TEST(RenderPoolsTest, WithoutABlockThatWasNotKeptThereIsNothingToSayOfThem) {
  v1::GetStatsResponse stats = Stats();
  EXPECT_THAT(RenderPools(stats), HasSubstr("not kept by"));
  stats.mutable_devices(0)->mutable_pools(0)->clear_not_kept();
  EXPECT_THAT(RenderPools(stats), Not(HasSubstr("not kept by")));
}

TEST(RenderPoolsTest, DevicesFollowEachOther) {
  v1::GetStatsResponse stats = Stats();
  *stats.add_devices() = stats.devices(0);
  stats.mutable_devices(1)->mutable_device()->set_index(1);
  EXPECT_THAT(RenderPools(stats), HasSubstr("\n\ndevice 1: NVIDIA L4"));
}

TEST(RenderPoolsTest, NamesAreMadePrintable) {
  v1::GetStatsResponse stats = Stats();
  stats.mutable_devices(0)->mutable_pools(0)->set_name("\x1b[2J\n");
  EXPECT_THAT(RenderPools(stats), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace heapbroker

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

constexpr int64_t kStart = 1'700'000'000;  // Seconds since 1970.
constexpr uint64_t kMiB = 1 << 20;

v1::DeviceStats SoftwareDevice() {
  v1::DeviceStats stats;
  v1::Device& device = *stats.mutable_device();
  device.set_name("llvmpipe (LLVM 15.0.6, 256 bits)");
  device.set_type(v1::DEVICE_TYPE_CPU);
  device.set_software(true);
  device.set_driver_info("Mesa 22.3.6 (LLVM 15.0.6)");
  v1::HeapStats& heap = *stats.add_heaps();
  heap.set_size(2048 * kMiB);
  heap.set_device_local(true);
  heap.set_budget(1000 * kMiB);
  heap.set_in_use(100 * kMiB);
  heap.set_available(900 * kMiB);
  v1::PoolStatsRow& pool = *stats.add_pools();
  pool.set_name("type 0");
  pool.set_leased_bytes(32 * kMiB);
  pool.set_idle_bytes(64 * kMiB);
  pool.set_leased_blocks(4);
  pool.set_idle_blocks(8);
  pool.set_requests(26);
  pool.set_hits(24);
  pool.set_misses(2);
  pool.mutable_not_kept()->set_count(2);
  pool.mutable_not_kept()->set_pressure(1);
  v1::PoolStatsRow& direct = *stats.add_pools();
  direct.set_name("direct");
  direct.set_reserved_bytes(1 * kMiB);
  direct.set_leased_bytes(2 * kMiB);
  direct.set_being_freed_bytes(1 * kMiB);
  direct.set_leased_blocks(1);
  direct.set_requests(10);
  direct.set_misses(10);
  direct.mutable_miss_reasons()->set_never_cached(10);
  stats.set_allocations(14);
  stats.set_max_allocations(4064);
  stats.set_segments(1);
  stats.set_segment_bytes(2 * kMiB);
  return stats;
}

v1::GetStatsResponse Stats() {
  v1::GetStatsResponse stats;
  stats.set_version("0.1.0");
  stats.mutable_start_time()->set_seconds(kStart);
  stats.set_client_sessions(4);
  stats.set_observer_sessions(1);
  stats.set_open_descriptors(23);
  stats.set_max_descriptors(1024);
  *stats.add_devices() = SoftwareDevice();
  return stats;
}

TEST(RenderStatsTest, ShowsDevicesHeapsAndPoolsUnderHeadings) {
  EXPECT_EQ(RenderStats(Stats(), absl::FromUnixSeconds(kStart + 75)),
            R"(heapbrokerd 0.1.0, up 1 min 15 s
sessions: 4 clients, 1 observer
descriptors: 23 of 1024

device 0: llvmpipe (LLVM 15.0.6, 256 bits), CPU [software]
  software: runs on the CPU and is no boundary between its users
  driver Mesa 22.3.6 (LLVM 15.0.6)
  14 of 4064 allocations
  1 segment of 2.0 MiB

  heap  where       budget     in use  of budget   free now
  0     device  1000.0 MiB  100.0 MiB     10.0 %  900.0 MiB

  pool    reserved    leased      idle  being freed  leased blocks  idle blocks
  type 0       0 B  32.0 MiB  64.0 MiB          0 B              4            8
  direct   1.0 MiB   2.0 MiB       0 B      1.0 MiB              1            0
  total    1.0 MiB  34.0 MiB  64.0 MiB      1.0 MiB              5            8

  pool    requests  hits  misses  hit rate  not kept
  type 0        26    24       2    92.3 %  3, most over count
  direct        10     0      10         -  0
  total         36    24      12    92.3 %  3, most over count
)");
}

// A device of which there is more to say.
v1::DeviceStats BusyDevice() {
  v1::DeviceStats stats = SoftwareDevice();
  stats.clear_pools();
  v1::Device& device = *stats.mutable_device();
  device.set_index(1);
  device.set_name("NVIDIA L4");
  device.set_type(v1::DEVICE_TYPE_DISCRETE_GPU);
  device.set_software(false);
  v1::HeapStats& heap = *stats.mutable_heaps(0);
  heap.set_others_in_use(1536 * kMiB);
  heap.set_waiting_requests(3);
  v1::PoolStatsRow& pool = *stats.add_pools();
  pool.set_name("device_local|host_visible (type 2)");
  pool.set_leased_bytes(900 * kMiB);
  pool.set_idle_bytes(90 * kMiB);
  pool.mutable_limits()->set_max_allocation_capacity(1024 * kMiB);
  pool.mutable_not_kept()->set_ttl(7);
  v1::PoolStatsRow& roomy = *stats.add_pools();
  roomy.set_name("type 1");
  roomy.mutable_limits()->set_max_allocation_capacity(~uint64_t{0});
  stats.set_max_allocations(1004);
  v1::CountLimit& device_limit = *stats.add_count_limits();
  device_limit.set_limit(v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_COUNT);
  device_limit.set_blocks(4064);
  v1::CountLimit& descriptors = *stats.add_count_limits();
  descriptors.set_limit(v1::MemoryRefusal::LIMIT_DESCRIPTORS);
  descriptors.set_blocks(1004);
  v1::RequestTotals& requests = *stats.mutable_requests();
  requests.set_granted(36);
  requests.set_queued(5);
  requests.set_never_fit(1);
  requests.set_limit_reached(2);
  requests.set_cancelled(4);
  return stats;
}

TEST(RenderStatsTest, ShowsWhatLimitsAndWhoWaitsWhereThereIsSomethingToSay) {
  v1::GetStatsResponse stats;
  stats.set_version("0.1.0");
  stats.mutable_start_time()->set_seconds(kStart);
  *stats.add_devices() = BusyDevice();
  EXPECT_EQ(RenderStats(stats, absl::FromUnixSeconds(kStart)),
            R"(heapbrokerd 0.1.0, up 0 s
sessions: 0 clients, 0 observers
descriptors: 0 of 0

device 1: NVIDIA L4, discrete GPU
  driver Mesa 22.3.6 (LLVM 15.0.6)
  14 of 1004 allocations (device 4064, descriptors 1004)
  1 segment of 2.0 MiB
  36 requests granted, 5 waited, 4 cancelled
  refused: 1 can never fit, 2 at a limit

  heap  where       budget     in use  of budget   free now   others  waiting
  0     device  1000.0 MiB  100.0 MiB     10.0 %  900.0 MiB  1.5 GiB        3

  pool                       leased      idle  leased blocks  idle blocks
  device_loc…le (type 2)  900.0 MiB  90.0 MiB              0            0
  type 1                        0 B       0 B              0            0
  total                   900.0 MiB  90.0 MiB              0            0
  device_loc…le (type 2) has 990.0 MiB of the 1.0 GiB that it may

  pool                    requests  hits  misses  hit rate  not kept
  device_loc…le (type 2)         0     0       0         -  7 idle for long
  type 1                         0     0       0         -  0
  total                          0     0       0         -  7 idle for long
)");
}

TEST(RenderStatsTest, OnlySoftwareDevicesAreMarked) {
  v1::GetStatsResponse stats = Stats();
  v1::Device& device = *stats.mutable_devices(0)->mutable_device();
  device.set_type(v1::DEVICE_TYPE_DISCRETE_GPU);
  device.set_software(false);
  const std::string text = RenderStats(stats, absl::FromUnixSeconds(kStart));
  EXPECT_THAT(text, HasSubstr("discrete GPU"));
  EXPECT_THAT(text, Not(HasSubstr("software")));
}

TEST(RenderStatsTest, CountsThatContradictEachOtherDoNoHarm) {
  v1::GetStatsResponse stats = Stats();
  v1::PoolStatsRow& row = *stats.mutable_devices(0)->mutable_pools(0);
  row.mutable_miss_reasons()->set_never_cached(1000);
  EXPECT_THAT(RenderStats(stats, absl::FromUnixSeconds(kStart)), HasSubstr("type 0"));
}

TEST(RenderStatsTest, NamesOfDevicesAndPoolsAreMadePrintable) {
  v1::GetStatsResponse stats = Stats();
  stats.mutable_devices(0)->mutable_device()->set_name("\x1b[2Jx");
  stats.mutable_devices(0)->mutable_pools(0)->set_name("a\nb");
  const std::string text = RenderStats(stats, absl::FromUnixSeconds(kStart));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("a\nb")));
}

}  // namespace
}  // namespace heapbroker

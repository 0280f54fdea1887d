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

v1::GetStatsResponse Stats() {
  v1::GetStatsResponse stats;
  v1::DeviceStats& device = *stats.add_devices();
  device.mutable_device()->set_name("NVIDIA L4");
  device.mutable_device()->set_type(v1::DEVICE_TYPE_DISCRETE_GPU);
  v1::MemoryType& type = *device.mutable_device()->add_memory_types();
  type.set_property_flags(1);
  type.add_handle_types(v1::HANDLE_TYPE_OPAQUE_FD);
  type.add_handle_types(v1::HANDLE_TYPE_DMA_BUF);
  v1::MemoryType& host = *device.mutable_device()->add_memory_types();
  host.set_heap_index(1);
  host.set_property_flags(14);
  device.set_allocations(14);
  device.set_max_allocations(4064);
  v1::HeapStats& heap = *device.add_heaps();
  heap.set_device_local(true);
  heap.set_size(23034 * kMiB);
  heap.set_budget(20730 * kMiB);
  heap.set_in_use(6000 * kMiB);
  heap.set_peak_in_use(9000 * kMiB);
  heap.set_available(12000 * kMiB);
  heap.set_driver_budget(21000 * kMiB);
  heap.set_driver_usage(6100 * kMiB);
  heap.set_others_in_use(2700 * kMiB);
  heap.set_idle_in_clients(100 * kMiB);
  heap.set_waiting_requests(2);
  v1::HeapStats& system = *device.add_heaps();
  system.set_size(64000 * kMiB);
  system.set_budget(57600 * kMiB);
  system.set_available(57600 * kMiB);
  return stats;
}

TEST(RenderHeapsTest, ShowsLimitsUseAndWhatTheDriverSays) {
  EXPECT_EQ(RenderHeaps(Stats()), R"(device 0: NVIDIA L4, discrete GPU
  14 of 4064 allocations

  heap  where       size    budget   in use  of budget  free now  waiting
  0     device  22.5 GiB  20.2 GiB  5.9 GiB     28.9 %  11.7 GiB        2
  1     host    62.5 GiB  56.2 GiB      0 B      0.0 %  56.2 GiB        0

  heap     peak  driver budget  driver use   others  client idle
  0     8.8 GiB       20.5 GiB     6.0 GiB  2.6 GiB    100.0 MiB
  1         0 B              -           -        -          0 B

  type  heap  exported as         properties
  0     0     opaque fd, dma-buf  device_local
  1     1     -                   host_visible|host_coherent|host_cached
)");
}

TEST(RenderHeapsTest, ASizeThatTheDriverRefusedIsShown) {
  v1::GetStatsResponse stats = Stats();
  EXPECT_THAT(RenderHeaps(stats), Not(HasSubstr("refused at")));
  stats.mutable_devices(0)->mutable_heaps(0)->set_smallest_driver_refusal(512 * kMiB);
  EXPECT_THAT(RenderHeaps(stats), HasSubstr("refused at"));
  EXPECT_THAT(RenderHeaps(stats), HasSubstr("512.0 MiB"));
}

}  // namespace
}  // namespace heapbroker

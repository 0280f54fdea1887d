// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_stats.h"

#include <string>

#include "daemon/core/simulated_device.h"
#include "daemon/messages/device_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::ElementsAre;

TEST(ConvertStatsTest, SumsTheReasonsOfMisses) {
  DeviceStats stats;
  stats.device = SimulatedDeviceInfo();
  PoolStats pool;
  pool.memory_type = 0;
  for (size_t i = 0; i < kMissReasonCount; ++i) pool.misses[i] = 1 + i;
  for (size_t i = 0; i < kNotKeptReasonCount; ++i) pool.not_kept[i] = 11 + i;
  pool.limits = {Bytes(21), Bytes(22), 23};
  pool.peak_total = Bytes(24);
  stats.pools = {pool};
  const v1::PoolStatsRow row = DeviceStatsMessage(stats).pools(0);
  EXPECT_EQ(row.misses(), 28u);
  EXPECT_EQ(row.miss_reasons().no_idle_block(), 1u);
  EXPECT_EQ(row.miss_reasons().only_too_small(), 2u);
  EXPECT_EQ(row.miss_reasons().only_too_large(), 3u);
  EXPECT_EQ(row.miss_reasons().other_tenants_only(), 4u);
  EXPECT_EQ(row.miss_reasons().at_capacity(), 5u);
  EXPECT_EQ(row.miss_reasons().over_size_limit(), 6u);
  EXPECT_EQ(row.miss_reasons().never_cached(), 7u);
  EXPECT_EQ(row.not_kept().count(), 11u);
  EXPECT_EQ(row.not_kept().capacity(), 12u);
  EXPECT_EQ(row.not_kept().ttl(), 13u);
  EXPECT_EQ(row.not_kept().pressure(), 14u);
  EXPECT_EQ(row.not_kept().trim(), 15u);
  EXPECT_EQ(row.not_kept().unclean_end(), 16u);
  EXPECT_EQ(row.not_kept().never_cached(), 17u);
  EXPECT_EQ(row.limits().max_allocation_size(), 21u);
  EXPECT_EQ(row.limits().max_allocation_capacity(), 22u);
  EXPECT_EQ(row.limits().max_free_allocation_count(), 23u);
  EXPECT_EQ(row.peak_total_bytes(), 24u);
}

TEST(ConvertStatsTest, ShowsWhatTheDriverSaysOfAHeapWhereItSaysAnything) {
  DeviceStats stats;
  stats.device = SimulatedDeviceInfo();
  HeapStats heap;
  heap.available = Bytes(1);
  heap.idle_in_clients = Bytes(2);
  heap.waiting_requests = 3;
  stats.heaps = {heap};
  const v1::HeapStats silent = DeviceStatsMessage(stats).heaps(0);
  EXPECT_EQ(silent.available(), 1u);
  EXPECT_EQ(silent.idle_in_clients(), 2u);
  EXPECT_EQ(silent.waiting_requests(), 3u);
  EXPECT_FALSE(silent.has_driver_budget() || silent.has_driver_usage());
  EXPECT_FALSE(silent.has_others_in_use() || silent.has_smallest_driver_refusal());

  stats.heaps[0].driver = HeapReport{Bytes(0), Bytes(5)};
  stats.heaps[0].others_in_use = Bytes(6);
  stats.heaps[0].smallest_driver_refusal = Bytes(7);
  const v1::HeapStats told = DeviceStatsMessage(stats).heaps(0);
  EXPECT_TRUE(told.has_driver_budget());
  EXPECT_EQ(told.driver_budget(), 0u);
  EXPECT_EQ(told.driver_usage(), 5u);
  EXPECT_EQ(told.others_in_use(), 6u);
  EXPECT_EQ(told.smallest_driver_refusal(), 7u);
}

TEST(ConvertStatsTest, ShowsWhatLimitsADeviceAndWhatBecameOfRequests) {
  DeviceStats stats;
  stats.device = SimulatedDeviceInfo();
  stats.count_limits = {{LimitKind::kMaxAllocationCount, 4000}, {LimitKind::kDescriptors, 500}};
  stats.requests = {1, 2, 3, 4, 5, 6};
  const v1::DeviceStats message = DeviceStatsMessage(stats);
  ASSERT_EQ(message.count_limits_size(), 2);
  EXPECT_EQ(message.count_limits(1).limit(), v1::MemoryRefusal::LIMIT_DESCRIPTORS);
  EXPECT_EQ(message.count_limits(1).blocks(), 500u);
  EXPECT_EQ(message.requests().granted(), 1u);
  EXPECT_EQ(message.requests().queued(), 2u);
  EXPECT_EQ(message.requests().never_fit(), 3u);
  EXPECT_EQ(message.requests().limit_reached(), 4u);
  EXPECT_EQ(message.requests().failed(), 5u);
  EXPECT_EQ(message.requests().cancelled(), 6u);
}

TEST(ConvertStatsTest, ShowsALease) {
  const LeaseStats lease{BlockId(NumberOnDevice(9, 3)),
                         SessionId(4),
                         TenantId(1000),
                         {.memory_type = 2, .handle_type = HandleType::kDmaBuf},
                         Bytes(100),
                         Bytes(4096),
                         "device_local (type 2)",
                         absl::FromUnixSeconds(1'700'000'000)};
  const v1::LeaseInfo message = LeaseMessage(lease);
  EXPECT_EQ(message.block_id(), 9 * 64 + 3u);
  EXPECT_EQ(message.session_id(), 4u);
  EXPECT_EQ(message.uid(), 1000u);
  EXPECT_EQ(message.device_index(), 3u);
  EXPECT_EQ(message.memory_type_index(), 2u);
  EXPECT_EQ(message.handle_type(), v1::HANDLE_TYPE_DMA_BUF);
  EXPECT_EQ(message.pool(), "device_local (type 2)");
  EXPECT_EQ(message.size(), 100u);
  EXPECT_EQ(message.allocated_bytes(), 4096u);
  EXPECT_EQ(message.start_time().seconds(), 1'700'000'000);
}

TEST(DeviceMessageTest, DescribesADevice) {
  DeviceInfo device = SimulatedDeviceInfo();
  device.type = DeviceType::kCpu;
  device.device_uuid = {1, 2, 3};
  const v1::Device message = DeviceMessage(device);
  EXPECT_EQ(message.name(), device.name);
  EXPECT_EQ(message.type(), v1::DEVICE_TYPE_CPU);
  EXPECT_TRUE(message.software());
  EXPECT_EQ(message.device_uuid(), std::string("\1\2\3", 3) + std::string(13, '\0'));
  EXPECT_EQ(message.heaps(0).size(), device.heaps[0].size.count());
  EXPECT_TRUE(message.memory_types(0).exportable());
}

TEST(DeviceMessageTest, SaysHowADevicesMemoryCanLeave) {
  DeviceInfo device = SimulatedDeviceInfo();
  device.memory_types = {device.memory_types[0], device.memory_types[0], device.memory_types[0]};
  device.memory_types[0].exportable = {.opaque_fd = true, .dma_buf = true};
  device.memory_types[1].exportable = {.dma_buf = true};
  device.memory_types[2].exportable = {};
  device.dedicated_only = {.dma_buf = true};
  device.device_addresses = true;
  const v1::Device message = DeviceMessage(device);
  EXPECT_THAT(message.memory_types(0).handle_types(),
              ElementsAre(v1::HANDLE_TYPE_OPAQUE_FD, v1::HANDLE_TYPE_DMA_BUF));
  EXPECT_THAT(message.memory_types(1).handle_types(), ElementsAre(v1::HANDLE_TYPE_DMA_BUF));
  EXPECT_TRUE(message.memory_types(1).exportable());
  EXPECT_THAT(message.memory_types(2).handle_types(), ElementsAre());
  EXPECT_FALSE(message.memory_types(2).exportable());
  EXPECT_THAT(message.dedicated_only(), ElementsAre(v1::HANDLE_TYPE_DMA_BUF));
  EXPECT_TRUE(message.device_addresses());
}

TEST(DeviceMessageTest, SendsNoDeviceNameThatAClientCouldNotParse) {
  DeviceInfo device = SimulatedDeviceInfo();
  device.name = "caf\xe9";
  v1::Device parsed;
  EXPECT_TRUE(parsed.ParseFromString(DeviceMessage(device).SerializeAsString()));
}

}  // namespace
}  // namespace heapbroker

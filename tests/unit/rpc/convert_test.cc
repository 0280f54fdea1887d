// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert.h"

#include <limits>
#include <string>
#include <vector>

#include "common/grpc/status.h"
#include "daemon/core/simulated_device.h"
#include "daemon/messages/device_message.h"
#include "daemon/rpc/convert_stats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// As of a call without a deadline.
absl::StatusOr<AllocateRequest> Converted(const v1::AllocateRequest& message,
                                          absl::Time deadline = absl::InfiniteFuture()) {
  return AllocateRequestOf(message, {kNow, deadline});
}
absl::StatusOr<OpenSegmentRequest> Converted(const v1::OpenSegmentRequest& message,
                                             absl::Time deadline = absl::InfiniteFuture()) {
  return OpenSegmentRequestOf(message, {kNow, deadline});
}

TEST(ConvertTest, TranslatesEveryKind) {
  v1::AllocateRequest message;
  for (int kind = v1::MemoryKind_MIN; kind <= v1::MemoryKind_MAX; ++kind) {
    message.add_blocks()->set_kind(static_cast<v1::MemoryKind>(kind));
  }
  ASSERT_OK_AND_ASSIGN(const AllocateRequest request, Converted(message));
  ASSERT_EQ(request.blocks.size(), 5u);
  EXPECT_EQ(request.blocks[0].memory, MemoryWish(MemoryKind::kDeviceLocal));
  EXPECT_EQ(request.blocks[1].memory, MemoryWish(MemoryKind::kDeviceLocal));
  EXPECT_EQ(request.blocks[2].memory, MemoryWish(MemoryKind::kHostVisible));
  EXPECT_EQ(request.blocks[3].memory, MemoryWish(MemoryKind::kHostCached));
  EXPECT_EQ(request.blocks[4].memory, MemoryWish(MemoryKind::kDeviceLocalHostVisible));
}

TEST(ConvertTest, TranslatesEveryWayToNameMemory) {
  v1::AllocateRequest message;
  message.add_blocks();
  message.add_blocks()->set_heap_key("host_visible|HOST_CACHED;mapping");
  message.add_blocks()->set_heap_key("*");
  message.add_blocks()->set_memory_type_index(0);
  message.add_blocks()->set_memory_type_index(4294967295u);
  ASSERT_OK_AND_ASSIGN(const AllocateRequest request, Converted(message));
  EXPECT_EQ(request.blocks[0].memory, MemoryWish(MemoryKind::kDeviceLocal));
  EXPECT_EQ(request.blocks[1].memory,
            MemoryWish(MemoryTypeWish{.host_visible = true, .host_cached = true}));
  EXPECT_EQ(request.blocks[2].memory, MemoryWish(MemoryTypeWish{}));
  EXPECT_EQ(request.blocks[3].memory, MemoryWish(MemoryTypeIndex{0}));
  EXPECT_EQ(request.blocks[4].memory, MemoryWish(MemoryTypeIndex{4294967295u}));
}

TEST(ConvertTest, RefusesHeapKeysThatAreNoneNamingTheBlock) {
  for (const char* key : {"", "devcie_local", "device_local=1gib", "device_local;mapping;x",
                          "device_local;compute", "device_local|transient"}) {
    v1::AllocateRequest message;
    message.add_blocks();
    message.add_blocks()->set_heap_key(key);
    EXPECT_THAT(Converted(message), StatusIs(kInvalid, "blocks[1].heap_key: ")) << key;
    v1::OpenSegmentRequest open;
    open.set_name("weights");
    open.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
    open.set_heap_key(key);
    EXPECT_THAT(std::string(Converted(open).status().message()), StartsWith("heap_key: ")) << key;
  }
}

TEST(ConvertTest, SaysHowARequestIsMarkedTransient) {
  v1::AllocateRequest message;
  message.add_blocks()->set_heap_key("transient");
  EXPECT_THAT(Converted(message), StatusIs(kInvalid, "BlockRequest.transient"));
}

TEST(ConvertTest, KeepsEveryFieldOfAnAllocateRequest) {
  v1::AllocateRequest message;
  message.set_request_id(18446744073709551615u);
  message.set_priority(v1::PRIORITY_HIGH);
  v1::BlockRequest& block = *message.add_blocks();
  block.set_size(18446744073709551615u);
  block.set_alignment(3);
  block.set_handle_type(v1::HANDLE_TYPE_DMA_BUF);
  block.set_device_address(true);
  message.add_blocks()->set_dedicated(true);
  message.add_blocks()->set_transient(true);
  message.add_blocks()->set_zeroed(true);
  ASSERT_OK_AND_ASSIGN(const AllocateRequest request, Converted(message));
  EXPECT_EQ(request.request_id, RequestId(18446744073709551615u));
  EXPECT_EQ(request.priority, Priority::kHigh);
  EXPECT_EQ(request.blocks[0].size, Bytes::Max());
  EXPECT_EQ(request.blocks[0].alignment, Bytes(3));
  EXPECT_EQ(request.blocks[0].handle_type, HandleType::kDmaBuf);
  const auto flags = [&](size_t i) {
    const BlockRequest& one = request.blocks[i];
    return std::vector<bool>{one.device_address, one.dedicated, one.transient, one.zeroed};
  };
  EXPECT_EQ(flags(0), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(flags(1), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(flags(2), (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(flags(3), (std::vector<bool>{false, false, false, true}));
  EXPECT_FALSE(request.blocks[1].handle_type.has_value());
}

TEST(ConvertTest, TranslatesEveryPriorityAndHandleType) {
  const auto priority = [](v1::Priority priority) {
    v1::AllocateRequest message;
    message.set_priority(priority);
    return Converted(message)->priority;
  };
  EXPECT_EQ(priority(v1::PRIORITY_UNSPECIFIED), Priority::kNormal);
  EXPECT_EQ(priority(v1::PRIORITY_LOW), Priority::kLow);
  EXPECT_EQ(priority(v1::PRIORITY_NORMAL), Priority::kNormal);
  v1::AllocateRequest message;
  message.add_blocks()->set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
  EXPECT_EQ(Converted(message)->blocks[0].handle_type, HandleType::kOpaqueFd);
}

TEST(ConvertTest, RefusesEnumsThatItDoesNotKnow) {
  v1::AllocateRequest message;
  message.add_blocks()->set_handle_type(static_cast<v1::HandleType>(3));
  EXPECT_THAT(Converted(message), StatusIs(kInvalid, "blocks[0].handle_type: 3 is no HandleType"));
  message.mutable_blocks(0)->clear_handle_type();
  message.set_priority(static_cast<v1::Priority>(-1));
  EXPECT_THAT(Converted(message), StatusIs(kInvalid, "priority: -1 is no Priority"));
}

TEST(ConvertTest, WithoutADeadlineOrATimeARequestDoesNotWait) {
  EXPECT_FALSE(Converted(v1::AllocateRequest())->wait_until.has_value());
}

TEST(ConvertTest, ARequestWaitsUntilALittleBeforeTheCallsDeadline) {
  const v1::AllocateRequest message;
  EXPECT_EQ(Converted(message, kNow + absl::Seconds(10))->wait_until,
            kNow + absl::Milliseconds(9900));
  // A tenth of what is left, where that is less.
  EXPECT_EQ(Converted(message, kNow + absl::Milliseconds(200))->wait_until,
            kNow + absl::Milliseconds(180));
  EXPECT_FALSE(Converted(message, kNow)->wait_until.has_value());
  EXPECT_FALSE(Converted(message, kNow - absl::Seconds(1))->wait_until.has_value());
}

TEST(ConvertTest, ARequestWaitsNoLongerThanItSays) {
  v1::AllocateRequest message;
  message.mutable_max_wait()->set_seconds(3);
  message.mutable_max_wait()->set_nanos(500'000'000);
  EXPECT_EQ(Converted(message)->wait_until, kNow + absl::Milliseconds(3500));
  EXPECT_EQ(Converted(message, kNow + absl::Seconds(2))->wait_until,
            kNow + absl::Milliseconds(1900));
  message.mutable_max_wait()->Clear();  // Zero, and set.
  EXPECT_FALSE(Converted(message, kNow + absl::Seconds(2))->wait_until.has_value());
  v1::OpenSegmentRequest open;
  open.set_name("weights");
  open.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  open.mutable_max_wait()->set_seconds(3);
  EXPECT_EQ(Converted(open)->wait_until, kNow + absl::Seconds(3));
}

TEST(ConvertTest, RefusesTimesThatAreNone) {
  const auto refused = [](int64_t seconds, int32_t nanos) {
    v1::AllocateRequest message;
    message.mutable_max_wait()->set_seconds(seconds);
    message.mutable_max_wait()->set_nanos(nanos);
    return std::string(Converted(message).status().message());
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(refused(-1, 0), StartsWith("max_wait: is -1 s"));
  EXPECT_THAT(refused(0, -1), StartsWith("max_wait: "));
  EXPECT_THAT(refused(1, -1), StartsWith("max_wait: "));
  EXPECT_THAT(refused(0, 1'000'000'000), StartsWith("max_wait: "));
  EXPECT_THAT(refused(315'576'000'001, 0), StartsWith("max_wait: "));
  EXPECT_THAT(refused(kMax, 0), StartsWith("max_wait: "));
  EXPECT_THAT(refused(-kMax - 1, 0), StartsWith("max_wait: "));
  EXPECT_EQ(refused(315'576'000'000, 999'999'999), "");
}

TEST(ConvertTest, AReleaseIsOfBlocksOrOfARequest) {
  v1::ReleaseRequest message;
  EXPECT_THAT(ReleaseTargetOf(message), StatusIs(kInvalid, "block_ids: is empty"));
  message.add_block_ids(7);
  EXPECT_EQ(ReleaseTargetOf(message)->blocks, std::vector<BlockId>{BlockId(7)});
  message.set_device_index(0);
  EXPECT_THAT(ReleaseTargetOf(message), StatusIs(kInvalid, "device_index: goes with"));
  message.set_request_id(9);
  EXPECT_THAT(ReleaseTargetOf(message), StatusIs(kInvalid, "request_id: is set beside"));
  message.clear_block_ids();
  EXPECT_EQ(ReleaseTargetOf(message)->request, RequestId(9));
}

TEST(ConvertTest, RefusesBlockIdZero) {
  v1::ReleaseRequest message;
  message.add_block_ids(7);
  message.add_block_ids(0);
  EXPECT_THAT(std::string(ReleaseTargetOf(message).status().message()),
              StartsWith("block_ids[1]: "));
}

TEST(ConvertTest, TellsTheModesOfOpenSegmentApart) {
  v1::OpenSegmentRequest message;
  message.set_name("weights");
  message.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  message.set_size(9);
  message.set_kind(v1::MEMORY_KIND_HOST_CACHED);
  message.set_handle_type(v1::HANDLE_TYPE_DMA_BUF);
  ASSERT_OK_AND_ASSIGN(OpenSegmentRequest request, Converted(message));
  EXPECT_EQ(request.mode, OpenMode::kCreateOrAttach);
  EXPECT_EQ(request.size, Bytes(9));
  EXPECT_EQ(request.memory, MemoryWish(MemoryKind::kHostCached));
  EXPECT_EQ(request.handle_type, HandleType::kDmaBuf);
  message.set_memory_type_index(2);
  EXPECT_EQ(Converted(message)->memory, MemoryWish(MemoryTypeIndex{2}));

  message.Clear();
  message.set_name("weights");
  message.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  EXPECT_EQ(Converted(message)->mode, OpenMode::kAttach);
  message.set_wait(true);
  EXPECT_EQ(Converted(message)->mode, OpenMode::kAttachWait);
}

TEST(ConvertTest, RefusesToSayWhatASegmentIsMadeOfWhenAttaching) {
  v1::OpenSegmentRequest message;
  message.set_name("weights");
  message.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  const auto refused = [&message] { return std::string(Converted(message).status().message()); };
  message.set_size(9);
  EXPECT_THAT(refused(), StartsWith("size: must be unset"));
  message.clear_size();
  message.set_kind(v1::MEMORY_KIND_DEVICE_LOCAL);
  EXPECT_THAT(refused(), StartsWith("kind: must be unset"));
  message.set_heap_key("device_local");
  EXPECT_THAT(refused(), StartsWith("heap_key: must be unset"));
  message.set_memory_type_index(0);
  EXPECT_THAT(refused(), StartsWith("memory_type_index: must be unset"));
  message.clear_memory();
  message.set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
  EXPECT_THAT(refused(), StartsWith("handle_type: must be unset"));
}

TEST(ConvertTest, GivesTheFactsThatAnImportNeeds) {
  DeviceInfo device = SimulatedDeviceInfo();
  device.index = 3;
  device.memory_types.push_back(device.memory_types[0]);
  device.memory_types[1].property_flags = 0x6;
  SegmentView view;
  view.id = SegmentId(5);
  view.size = Bytes(100);
  view.writer = true;
  view.blocks.push_back({BlockId(9),
                         Bytes(100),
                         Bytes(4096),
                         {.memory_type = 1,
                          .handle_type = HandleType::kDmaBuf,
                          .device_address = true,
                          .dedicated = true}});
  const v1::OpenSegmentResponse message = OpenSegmentMessage(view, device);
  EXPECT_EQ(message.segment_id(), 5u);
  EXPECT_TRUE(message.writer());
  EXPECT_FALSE(message.has_checksum());
  ASSERT_EQ(message.blocks_size(), 1);
  const v1::Block& block = message.blocks(0);
  EXPECT_EQ(block.block_id(), 9u);
  EXPECT_EQ(block.size(), 100u);
  EXPECT_EQ(block.allocation_size(), 4096u);
  EXPECT_EQ(block.memory_type_index(), 1u);
  EXPECT_EQ(block.memory_property_flags(), 0x6u);
  EXPECT_EQ(block.device_index(), 3u);
  EXPECT_EQ(block.handle_type(), v1::HANDLE_TYPE_DMA_BUF);
  EXPECT_TRUE(block.device_address());
  EXPECT_TRUE(block.dedicated());
}

TEST(ConvertTest, SumsTheReasonsOfMisses) {
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

TEST(ConvertTest, ShowsWhatTheDriverSaysOfAHeapWhereItSaysAnything) {
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

TEST(ConvertTest, ShowsWhatLimitsADeviceAndWhatBecameOfRequests) {
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

TEST(ConvertTest, ShowsALease) {
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

TEST(ConvertTest, DescribesADevice) {
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

TEST(ConvertTest, SaysHowADevicesMemoryCanLeave) {
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

TEST(ConvertTest, SendsNoDeviceNameThatAClientCouldNotParse) {
  DeviceInfo device = SimulatedDeviceInfo();
  device.name = "caf\xe9";
  v1::Device parsed;
  EXPECT_TRUE(parsed.ParseFromString(DeviceMessage(device).SerializeAsString()));
}

TEST(GrpcStatusTest, KeepsEveryCodeAndTheMessageBothWays) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    const grpc::Status sent = ToGrpcStatus(status);
    EXPECT_EQ(sent.error_code(), code);
    EXPECT_EQ(FromGrpcStatus(sent), status);
  }
}

TEST(GrpcStatusTest, TakesACodeThatDoesNotExistForUnknown) {
  const grpc::Status strange(static_cast<grpc::StatusCode>(20), "why");
  EXPECT_EQ(FromGrpcStatus(strange), absl::UnknownError("why"));
}

}  // namespace
}  // namespace heapbroker

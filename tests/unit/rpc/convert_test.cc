// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert.h"

#include <string>
#include <vector>

#include "common/grpc/status.h"
#include "daemon/core/simulated_device.h"
#include "daemon/messages/device_message.h"
#include "daemon/rpc/convert_stats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::StartsWith;

TEST(ConvertTest, TranslatesEveryKind) {
  v1::AllocateRequest message;
  for (int kind = v1::MemoryKind_MIN; kind <= v1::MemoryKind_MAX; ++kind) {
    message.add_blocks()->set_kind(static_cast<v1::MemoryKind>(kind));
  }
  const absl::StatusOr<std::vector<BlockRequest>> requests = BlockRequestsOf(message);
  ASSERT_TRUE(requests.ok());
  ASSERT_EQ(requests->size(), 5u);
  EXPECT_EQ((*requests)[0].memory, MemoryWish(MemoryKind::kDeviceLocal));
  EXPECT_EQ((*requests)[1].memory, MemoryWish(MemoryKind::kDeviceLocal));
  EXPECT_EQ((*requests)[2].memory, MemoryWish(MemoryKind::kHostVisible));
  EXPECT_EQ((*requests)[3].memory, MemoryWish(MemoryKind::kHostCached));
  EXPECT_EQ((*requests)[4].memory, MemoryWish(MemoryKind::kDeviceLocalHostVisible));
}

TEST(ConvertTest, KeepsEveryFieldOfABlockRequest) {
  v1::AllocateRequest message;
  v1::BlockRequest& block = *message.add_blocks();
  block.set_size(18446744073709551615u);
  block.set_alignment(3);
  block.set_zeroed(true);
  const absl::StatusOr<std::vector<BlockRequest>> requests = BlockRequestsOf(message);
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ((*requests)[0].size, Bytes::Max());
  EXPECT_EQ((*requests)[0].alignment, Bytes(3));
  EXPECT_TRUE((*requests)[0].zeroed);
}

TEST(ConvertTest, RefusesBlockIdZero) {
  v1::ReleaseRequest message;
  message.add_block_ids(7);
  message.add_block_ids(0);
  EXPECT_THAT(std::string(BlockIdsOf(message).status().message()), StartsWith("block_ids[1]: "));
}

TEST(ConvertTest, TellsTheModesOfOpenSegmentApart) {
  v1::OpenSegmentRequest message;
  message.set_name("weights");
  message.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  message.set_size(9);
  message.set_kind(v1::MEMORY_KIND_HOST_CACHED);
  absl::StatusOr<OpenSegmentRequest> request = OpenSegmentRequestOf(message);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->mode, OpenMode::kCreateOrAttach);
  EXPECT_EQ(request->size, Bytes(9));
  EXPECT_EQ(request->memory, MemoryWish(MemoryKind::kHostCached));

  message.set_size(0);
  message.clear_kind();
  message.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  EXPECT_EQ(OpenSegmentRequestOf(message)->mode, OpenMode::kAttach);
  message.set_wait(true);
  EXPECT_EQ(OpenSegmentRequestOf(message)->mode, OpenMode::kAttachWait);
}

TEST(ConvertTest, RefusesASizeOrAKindWhenAttaching) {
  v1::OpenSegmentRequest message;
  message.set_name("weights");
  message.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  message.set_size(9);
  EXPECT_THAT(std::string(OpenSegmentRequestOf(message).status().message()),
              StartsWith("size: must be unset"));
  message.set_size(0);
  message.set_kind(v1::MEMORY_KIND_DEVICE_LOCAL);
  EXPECT_THAT(std::string(OpenSegmentRequestOf(message).status().message()),
              StartsWith("kind: must be unset"));
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
  view.blocks.push_back({BlockId(9), Bytes(100), Bytes(4096), {.memory_type = 1}});
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
}

TEST(ConvertTest, SumsTheReasonsOfMisses) {
  DeviceStats stats;
  stats.device = SimulatedDeviceInfo();
  PoolStats pool;
  pool.memory_type = 0;
  pool.misses = {1, 2, 3, 4};
  pool.not_kept = {5, 6, 7, 8};
  stats.pools = {pool};
  const v1::PoolStatsRow row = DeviceStatsMessage(stats).pools(0);
  EXPECT_EQ(row.misses(), 10u);
  EXPECT_EQ(row.miss_reasons().no_idle_block(), 1u);
  EXPECT_EQ(row.miss_reasons().only_too_small(), 2u);
  EXPECT_EQ(row.miss_reasons().other_tenants_only(), 3u);
  EXPECT_EQ(row.miss_reasons().never_cached(), 4u);
  EXPECT_EQ(row.not_kept().count(), 5u);
  EXPECT_EQ(row.not_kept().pressure(), 6u);
  EXPECT_EQ(row.not_kept().unclean_end(), 7u);
  EXPECT_EQ(row.not_kept().never_cached(), 8u);
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

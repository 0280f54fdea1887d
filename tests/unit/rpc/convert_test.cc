// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert.h"

#include <limits>
#include <string>
#include <vector>

#include "common/grpc/status.h"
#include "daemon/core/simulated_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

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
  EXPECT_EQ(Converted(v1::AllocateRequest())->answer_by, absl::InfiniteFuture());
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
  EXPECT_EQ(Converted(message, kNow + absl::Seconds(10))->answer_by,
            kNow + absl::Milliseconds(9900));
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
  EXPECT_EQ(Converted(message, kNow + absl::Seconds(2))->answer_by, kNow + absl::Milliseconds(1900))
      << "it has to be answered all the same";
  v1::OpenSegmentRequest open;
  open.set_name("weights");
  open.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  open.mutable_max_wait()->set_seconds(3);
  EXPECT_EQ(Converted(open)->wait_until, kNow + absl::Seconds(3));
  EXPECT_EQ(Converted(open, kNow + absl::Seconds(10))->answer_by, kNow + absl::Milliseconds(9900));
}

TEST(ConvertTest, WhoWouldWaitForCenturiesWaitsForOne) {
  constexpr absl::Duration kCentury = absl::Hours(24 * 365 * 100);
  v1::AllocateRequest message;
  EXPECT_EQ(Converted(message, kNow + 100 * kCentury)->wait_until, kNow + kCentury);
  message.mutable_max_wait()->set_seconds(315'576'000'000);
  message.mutable_max_wait()->set_nanos(999'999'999);
  EXPECT_EQ(Converted(message)->wait_until, kNow + kCentury);
  EXPECT_EQ(Converted(message, kNow + absl::Seconds(10))->wait_until,
            kNow + absl::Milliseconds(9900));
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

// However much is wrong with the entries: nobody looks at them.
TEST(ConvertTest, CountsAListBeforeItLooksAtIt) {
  v1::AllocateRequest allocate;
  for (int i = 0; i < 256; ++i) allocate.add_blocks();
  EXPECT_THAT(Converted(allocate), IsOk());
  for (int i = 0; i < 32'000; ++i) allocate.add_blocks()->set_heap_key("devcie_local");
  EXPECT_EQ(Converted(allocate).status(),
            absl::InvalidArgumentError("blocks: has 32256 entries; allowed are 1 to 256"));
  v1::ReleaseRequest release;
  for (int i = 0; i < 256; ++i) release.add_block_ids(7);
  EXPECT_THAT(ReleaseTargetOf(release), IsOk());
  release.add_block_ids(0);
  EXPECT_EQ(ReleaseTargetOf(release).status(),
            absl::InvalidArgumentError("block_ids: has 257 entries; allowed are 1 to 256"));
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

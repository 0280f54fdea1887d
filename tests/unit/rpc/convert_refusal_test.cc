// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_refusal.h"

#include "common/grpc/status.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr Refusal kRefusal{.kind = RefusalKind::kNeverFits,
                           .limit = LimitKind::kHeapBudget,
                           .heap = 2,
                           .value = 100,
                           .in_use = 60,
                           .requested = 200,
                           .largest_now = 30,
                           .free = 40};

TEST(ConvertRefusalTest, KeepsEveryFigure) {
  const v1::MemoryRefusal message = RefusalMessage(kRefusal, 3);
  EXPECT_TRUE(message.never_fits());
  EXPECT_EQ(message.limit(), v1::MemoryRefusal::LIMIT_HEAP_BUDGET);
  EXPECT_EQ(message.heap_index(), 2u);
  EXPECT_EQ(message.value(), 100u);
  EXPECT_EQ(message.in_use(), 60u);
  EXPECT_EQ(message.requested(), 200u);
  EXPECT_EQ(message.largest_now(), 30u);
  EXPECT_EQ(message.free(), 40u);
  EXPECT_EQ(message.device_index(), 3u);
}

TEST(ConvertRefusalTest, TellsHeapZeroFromNoHeap) {
  Refusal refusal = kRefusal;
  refusal.heap = 0;
  EXPECT_TRUE(RefusalMessage(refusal, 0).has_heap_index());
  refusal.heap.reset();
  refusal.kind = RefusalKind::kLimitReached;
  const v1::MemoryRefusal message = RefusalMessage(refusal, 0);
  EXPECT_FALSE(message.has_heap_index());
  EXPECT_FALSE(message.never_fits());
}

TEST(ConvertRefusalTest, HasAWordForEveryLimit) {
  EXPECT_EQ(LimitMessage(LimitKind::kHeapBudget), v1::MemoryRefusal::LIMIT_HEAP_BUDGET);
  EXPECT_EQ(LimitMessage(LimitKind::kMaxAllocationSize),
            v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_SIZE);
  EXPECT_EQ(LimitMessage(LimitKind::kMaxAllocationCount),
            v1::MemoryRefusal::LIMIT_MAX_ALLOCATION_COUNT);
  EXPECT_EQ(LimitMessage(LimitKind::kDescriptors), v1::MemoryRefusal::LIMIT_DESCRIPTORS);
  EXPECT_EQ(LimitMessage(LimitKind::kMemoryMaps), v1::MemoryRefusal::LIMIT_MEMORY_MAPS);
  EXPECT_EQ(LimitMessage(LimitKind::kDriver), v1::MemoryRefusal::LIMIT_DRIVER);
  EXPECT_EQ(LimitMessage(LimitKind::kWaitingCalls), v1::MemoryRefusal::LIMIT_WAITING_CALLS);
  EXPECT_EQ(LimitMessage(LimitKind::kWaitingBlocks), v1::MemoryRefusal::LIMIT_WAITING_BLOCKS);
}

TEST(ConvertRefusalTest, TravelsAsGoogleRpcStatus) {
  const absl::Status status =
      WithDetails(absl::ResourceExhaustedError("does not fit"), kRefusal, 3);
  const grpc::Status sent = ToGrpcStatus(status);
  EXPECT_EQ(sent.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(sent.error_message(), "does not fit");
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  EXPECT_EQ(details.code(), 8);
  EXPECT_EQ(details.message(), "does not fit");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/heapbroker.v1.MemoryRefusal");
  v1::MemoryRefusal refusal;
  ASSERT_TRUE(details.details(0).UnpackTo(&refusal));
  EXPECT_EQ(refusal.requested(), 200u);
  EXPECT_EQ(StatusDetails(FromGrpcStatus(sent)), sent.error_details());
}

TEST(ConvertRefusalTest, AddsTheDetailsOfARefusalOfMemoryOnly) {
  const absl::Status refused = WithRefusalDetails(RefusalStatus(kRefusal), 1);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(StatusDetails(refused)));
  v1::MemoryRefusal refusal;
  ASSERT_TRUE(details.details(0).UnpackTo(&refusal));
  EXPECT_EQ(refusal.value(), 100u);
  EXPECT_EQ(refusal.device_index(), 1u);

  const absl::Status other = absl::ResourceExhaustedError("too many messages");
  EXPECT_EQ(WithRefusalDetails(other, 1), other);
  EXPECT_TRUE(ToGrpcStatus(other).error_details().empty());
}

}  // namespace
}  // namespace heapbroker

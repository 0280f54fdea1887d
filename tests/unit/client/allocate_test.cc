// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a request for memory says, and what becomes of one whose reply is lost.
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "heapbroker/memory_refusal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class AllocateTest : public testing::Test {
 protected:
  std::shared_ptr<Client> Connect() {
    absl::StatusOr<std::shared_ptr<Client>> client =
        Client::Connect({.name = "test", .runtime_dir = daemon_.runtime_dir()});
    EXPECT_THAT(client, IsOk());
    return *client;
  }
  bool NothingIsLeft() {
    return WaitFor([&] { return daemon_.leased_blocks() == 0; });
  }

  MemfdBlockSource source_;
  FakeDaemon daemon_{source_, 3};
  std::shared_ptr<Client> client_ = Connect();
};

TEST_F(AllocateTest, SaysWhatTheCallerDoesNotOnlyByDefault) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, client_->Allocate({.size = Bytes(1)}));
  const v1::AllocateRequest request = daemon_.last_allocate();
  EXPECT_EQ(request.priority(), v1::PRIORITY_NORMAL);
  EXPECT_EQ(request.device_index(), 0u);
  EXPECT_FALSE(request.has_max_wait()) << "until the call's deadline";
  EXPECT_EQ(request.blocks(0).kind(), v1::MEMORY_KIND_DEVICE_LOCAL);
  EXPECT_EQ(request.blocks(0).handle_type(), v1::HANDLE_TYPE_UNSPECIFIED);
}

TEST_F(AllocateTest, SaysWhichDeviceHowUrgentlyAndHowLong) {
  ASSERT_OK_AND_ASSIGN(
      const Lease lease,
      client_->Allocate(
          {.size = Bytes(1)},
          {.device_index = 2, .priority = Priority::kHigh, .max_wait = absl::Milliseconds(1500)}));
  const v1::AllocateRequest request = daemon_.last_allocate();
  EXPECT_EQ(request.device_index(), 2u);
  EXPECT_EQ(request.priority(), v1::PRIORITY_HIGH);
  EXPECT_EQ(request.max_wait().seconds(), 1);
  EXPECT_EQ(request.max_wait().nanos(), 500'000'000);
  EXPECT_EQ(lease.facts().device_index, 2u);
}

TEST_F(AllocateTest, ASegmentSaysItsDeviceAndMemory) {
  ASSERT_OK_AND_ASSIGN(const Segment segment,
                       client_->OpenSegment({.name = "w",
                                             .size = Bytes(2),
                                             .memory = HeapKey{"host_visible"},
                                             .handle_type = HandleType::kDmaBuf,
                                             .device_index = 1,
                                             .max_wait = absl::ZeroDuration()}));
  const v1::OpenSegmentRequest request = daemon_.last_open_segment();
  EXPECT_EQ(request.heap_key(), "host_visible");
  EXPECT_EQ(request.handle_type(), v1::HANDLE_TYPE_DMA_BUF);
  EXPECT_EQ(request.device_index(), 1u);
  EXPECT_TRUE(request.has_max_wait());
  EXPECT_EQ(segment.blocks().at(0)->facts().device_index, 1u);
}

TEST_F(AllocateTest, LeasesOfSeveralDevicesAreReleasedByDevice) {
  std::vector<Lease> leases;
  for (const uint32_t device : {1, 0, 1}) {
    ASSERT_OK_AND_ASSIGN(Lease lease,
                         client_->Allocate({.size = Bytes(1)}, {.device_index = device}));
    leases.push_back(std::move(lease));
  }
  EXPECT_THAT(ReleaseAll(std::move(leases)), IsOk());
  EXPECT_THAT(daemon_.releases(), UnorderedElementsAre(ElementsAre(2), ElementsAre(1, 3)));
}

TEST_F(AllocateTest, EveryCallHasARequestIdOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(const Lease first, client_->Allocate({.size = Bytes(1)}));
  const uint64_t id = daemon_.last_allocate().request_id();
  EXPECT_GT(id, kMaxRequestId);
  ASSERT_OK_AND_ASSIGN(const Lease second, client_->Allocate({.size = Bytes(1)}));
  EXPECT_GT(daemon_.last_allocate().request_id(), id);
}

TEST_F(AllocateTest, WhatALateReplyWouldHaveGrantedIsGivenBack) {
  daemon_.HoldAllocateReplies(true);
  EXPECT_THAT(client_->AllocateAll({{.size = Bytes(1)}, {.size = Bytes(2)}},
                                   {.device_index = 1, .timeout = absl::Milliseconds(100)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "in time"));
  EXPECT_TRUE(NothingIsLeft());
  ASSERT_EQ(daemon_.undone().size(), 1u);
  EXPECT_EQ(daemon_.undone()[0].request_id(), daemon_.last_allocate().request_id());
  EXPECT_EQ(daemon_.undone()[0].device_index(), 1u);
}

TEST_F(AllocateTest, NobodyWaitsForAnUndoingThatHangs) {
  daemon_.HoldAllocateReplies(true);
  daemon_.HoldUndoReplies(true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(client_->Allocate({.size = Bytes(1)}, {.timeout = absl::Milliseconds(100)}),
                StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  }
  EXPECT_TRUE(WaitFor([&] { return daemon_.held_replies() == 1; })) << "one after the other";
  client_.reset();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 0; }));
  EXPECT_TRUE(WaitFor([&] { return daemon_.held_replies() == 0; })) << "it was cancelled";
}

TEST_F(AllocateTest, WhatACancelledCallWouldHaveGottenIsGivenBack) {
  daemon_.HoldAllocateReplies(true);
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] {
    EXPECT_TRUE(WaitFor([&] { return daemon_.held_replies() == 1; }));
    cancellation->Cancel();
  });
  EXPECT_THAT(client_->Allocate({.size = Bytes(1)}, {.cancellation = cancellation}),
              StatusIs(absl::StatusCode::kCancelled, ""));
  canceller.join();
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(AllocateTest, ACallCancelledBeforehandAsksForNothing) {
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  EXPECT_THAT(client_->Allocate({.size = Bytes(1)}, {.cancellation = cancellation}),
              StatusIs(absl::StatusCode::kCancelled, "before it began"));
  EXPECT_EQ(daemon_.last_allocate().request_id(), 0u);
}

TEST_F(AllocateTest, TheCallersOwnRequestIsRepeatedAndGetsTheSameBlocks) {
  daemon_.HoldAllocateReplies(true);
  AllocateOptions options{.timeout = absl::Milliseconds(100), .request_id = 5};
  ASSERT_THAT(client_->Allocate({.size = Bytes(1)}, options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  ASSERT_TRUE(WaitFor([&] { return daemon_.held_replies() == 0; }));
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  daemon_.HoldAllocateReplies(false);
  options.timeout = std::nullopt;
  ASSERT_OK_AND_ASSIGN(Lease lease, client_->Allocate({.size = Bytes(1)}, options));
  EXPECT_EQ(lease.facts().block_id, 1u);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_THAT(lease.Release(), IsOk());
  EXPECT_TRUE(daemon_.undone().empty());
}

TEST_F(AllocateTest, TheCallersOwnRequestIsUndoneByTheCaller) {
  daemon_.HoldAllocateReplies(true);
  ASSERT_THAT(
      client_->Allocate({.size = Bytes(1)}, {.timeout = absl::Milliseconds(100), .request_id = 5}),
      StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(client_->UndoAllocate(5), IsOk());
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
  EXPECT_THAT(client_->UndoAllocate(5), StatusIs(absl::StatusCode::kNotFound, "no such request"));
}

TEST_F(AllocateTest, RequestIdsOfTheLibraryAreNotTheCallers) {
  EXPECT_THAT(client_->Allocate({.size = Bytes(1)}, {.request_id = kMaxRequestId + 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, "request_id"));
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(AllocateTest, ARefusalKeepsItsDetails) {
  google::rpc::Status details;
  v1::MemoryRefusal refusal;
  refusal.set_limit(v1::MemoryRefusal::LIMIT_HEAP_BUDGET);
  refusal.set_largest_now(7);
  details.add_details()->PackFrom(refusal);
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "heap 0 is full",
                                     details.SerializeAsString()));
  const absl::Status status = client_->Allocate({.size = Bytes(1)}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "heap 0 is full"));
  ASSERT_TRUE(RefusalOf(status).has_value());
  EXPECT_EQ(RefusalOf(status)->limit, MemoryRefusal::Limit::kHeapBudget);
  EXPECT_EQ(RefusalOf(status)->largest_now, 7u);
}

TEST_F(AllocateTest, WhatAReplyThatWasLostForWantOfADescriptorWouldHaveGrantedIsGivenBack) {
  // As Connection::Conclude tells of it.
  daemon_.LoseAllocateReplies(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "descriptors"));
  EXPECT_THAT(client_->Allocate({.size = Bytes(1)}),
              StatusIs(absl::StatusCode::kResourceExhausted, "descriptors"));
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_EQ(daemon_.undone().size(), 1u);
}

TEST_F(AllocateTest, ARefusedRequestIsNotUndone) {
  daemon_.RefuseAllocationsWith(NoMemoryError("full"));
  EXPECT_FALSE(client_->Allocate({.size = Bytes(1)}).ok());
  daemon_.RefuseAllocationsWith(absl::OkStatus());
  // Undoing goes in order: had the refused one been undone, it would come first.
  daemon_.HoldAllocateReplies(true);
  EXPECT_FALSE(client_->Allocate({.size = Bytes(1)}, {.timeout = absl::Milliseconds(50)}).ok());
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_EQ(daemon_.undone().size(), 1u);
}

}  // namespace
}  // namespace heapbroker

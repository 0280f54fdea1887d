// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// MemoryBroker over the wire: what each method does when all is well.
#include "daemon/rpc/memory_broker_service.h"

#include <string>

#include "google/rpc/status.pb.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

class MemoryBrokerServiceTest : public ServerFixture {};

TEST_F(MemoryBrokerServiceTest, AllocatesBlocksInTheOrderOfTheRequest) {
  const TestSession session = OpenClient();
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1000);
  v1::BlockRequest& second = *request.add_blocks();
  second.set_size(MiB(1).count());
  second.set_alignment(4096);
  second.set_kind(v1::MEMORY_KIND_HOST_VISIBLE);
  second.set_zeroed(true);

  v1::AllocateResponse response;
  CallContext context(session);
  ASSERT_TRUE(memory_->Allocate(context.get(), request, &response).ok());

  ASSERT_EQ(response.blocks_size(), 2);
  EXPECT_EQ(response.blocks(0).size(), 1000u);
  EXPECT_EQ(response.blocks(1).size(), MiB(1).count());
  EXPECT_NE(response.blocks(0).block_id(), response.blocks(1).block_id());
  for (const v1::Block& block : response.blocks()) {
    EXPECT_NE(block.block_id(), 0u);
    EXPECT_GE(block.allocation_size(), block.size());
    EXPECT_EQ(block.handle_type(), v1::HANDLE_TYPE_OPAQUE_FD);
    EXPECT_EQ(block.memory_type_index(), 0u);
    EXPECT_EQ(block.memory_property_flags(), 0xFu);
    EXPECT_EQ(block.device_index(), 0u);
  }
  EXPECT_EQ(broker_.Holdings(session.session.id).leased_blocks, 2u);
}

TEST_F(MemoryBrokerServiceTest, ServesAReleasedBlockAgainWithoutTheDevice) {
  const TestSession session = OpenClient();
  const v1::Block first = AllocateOne(session, 1000);
  v1::ReleaseRequest release;
  release.add_block_ids(first.block_id());
  v1::ReleaseResponse released;
  CallContext release_context(session);
  ASSERT_TRUE(memory_->Release(release_context.get(), release, &released).ok());
  EXPECT_TRUE(NothingHeld(session));

  const v1::Block second = AllocateOne(session, 1000);
  EXPECT_EQ(second.allocation_size(), first.allocation_size());
  EXPECT_EQ(device_.counts().allocations, 1u);
}

TEST_F(MemoryBrokerServiceTest, SaysByWhichLimitARequestDoesNotFit) {
  const TestSession session = OpenClient();
  v1::AllocateRequest request;
  request.add_blocks()->set_size(MiB(65).count());
  v1::AllocateResponse response;
  CallContext context(session);
  const grpc::Status status = memory_->Allocate(context.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(status.error_message().empty());
  EXPECT_TRUE(NothingHeld(session));

  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.message(), status.error_message());
  v1::MemoryRefusal refusal;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&refusal));
  EXPECT_TRUE(refusal.never_fits());
  EXPECT_EQ(refusal.limit(), v1::MemoryRefusal::LIMIT_HEAP_BUDGET);
  EXPECT_EQ(refusal.heap_index(), 0u);
  EXPECT_EQ(refusal.value(), MiB(64).count());
  EXPECT_EQ(refusal.requested(), MiB(65).count());
  EXPECT_EQ(refusal.largest_now(), MiB(64).count());
}

TEST_F(MemoryBrokerServiceTest, LeasesTheMemoryTypeThatIsNamed) {
  const TestSession session = OpenClient();
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  request.mutable_blocks(0)->set_memory_type_index(0);
  request.add_blocks()->set_size(1);
  request.mutable_blocks(1)->set_heap_key("device_local|host_visible");
  v1::AllocateResponse response;
  CallContext context(session);
  EXPECT_TRUE(memory_->Allocate(context.get(), request, &response).ok());
  EXPECT_EQ(response.blocks_size(), 2);
  request.mutable_blocks(0)->set_memory_type_index(1);
  CallContext another(session);
  const grpc::Status status = memory_->Allocate(another.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("memory_type_index: is 1"), std::string::npos)
      << status.error_message();
}

TEST_F(MemoryBrokerServiceTest, PassesTheDriversErrorOn) {
  device_.FailAllocations(absl::InternalError("VK_ERROR_UNKNOWN"), 8);
  const TestSession session = OpenClient();
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  v1::AllocateResponse response;
  CallContext context(session);
  const grpc::Status status = memory_->Allocate(context.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_NE(status.error_message().find("VK_ERROR_UNKNOWN"), std::string::npos);
  EXPECT_TRUE(NothingHeld(session));
}

TEST_F(MemoryBrokerServiceTest, TakesASegmentFromItsWriterToOthersAndBack) {
  const TestSession writer = OpenClient();
  const TestSession reader = OpenClient();

  v1::OpenSegmentResponse opened;
  CallContext open_context(writer);
  ASSERT_TRUE(
      memory_->OpenSegment(open_context.get(), CreateRequest("weights", 5000), &opened).ok());
  EXPECT_TRUE(opened.writer());
  EXPECT_EQ(opened.size(), 5000u);
  EXPECT_FALSE(opened.has_checksum());
  ASSERT_EQ(opened.blocks_size(), 1);
  EXPECT_EQ(opened.blocks(0).size(), 5000u);

  v1::SealSegmentRequest seal;
  seal.set_segment_id(opened.segment_id());
  seal.mutable_checksum()->set_high(1);
  seal.mutable_checksum()->set_low(0xFFFFFFFFFFFFFFFF);
  v1::SealSegmentResponse sealed;
  CallContext seal_context(writer);
  ASSERT_TRUE(memory_->SealSegment(seal_context.get(), seal, &sealed).ok());

  v1::OpenSegmentRequest attach;
  attach.set_name("weights");
  attach.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  v1::OpenSegmentResponse attached;
  CallContext attach_context(reader);
  ASSERT_TRUE(memory_->OpenSegment(attach_context.get(), attach, &attached).ok());
  EXPECT_FALSE(attached.writer());
  EXPECT_EQ(attached.segment_id(), opened.segment_id());
  EXPECT_EQ(attached.blocks(0).block_id(), opened.blocks(0).block_id());
  EXPECT_EQ(attached.checksum().high(), 1u);
  EXPECT_EQ(attached.checksum().low(), 0xFFFFFFFFFFFFFFFF);

  v1::CloseSegmentRequest close;
  close.set_segment_id(opened.segment_id());
  v1::CloseSegmentResponse closed;
  CallContext close_context(reader);
  ASSERT_TRUE(memory_->CloseSegment(close_context.get(), close, &closed).ok());
  EXPECT_TRUE(NothingHeld(reader));
  CallContext again_context(reader);
  EXPECT_EQ(memory_->CloseSegment(again_context.get(), close, &closed).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(MemoryBrokerServiceTest, RefusesAttachingToWhatDoesNotExist) {
  const TestSession session = OpenClient();
  v1::OpenSegmentRequest attach;
  attach.set_name("weights");
  attach.set_mode(v1::OpenSegmentRequest::MODE_ATTACH);
  v1::OpenSegmentResponse attached;
  CallContext context(session);
  EXPECT_EQ(memory_->OpenSegment(context.get(), attach, &attached).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(MemoryBrokerServiceTest, RefusesAnotherSizeAndTellsBoth) {
  const TestSession session = OpenClient();
  v1::OpenSegmentResponse response;
  CallContext first(session);
  ASSERT_TRUE(memory_->OpenSegment(first.get(), CreateRequest("weights", 5000), &response).ok());
  CallContext second(session);
  const grpc::Status status =
      memory_->OpenSegment(second.get(), CreateRequest("weights", 6000), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_NE(status.error_message().find("5000"), std::string::npos);
  EXPECT_NE(status.error_message().find("6000"), std::string::npos);
}

TEST_F(MemoryBrokerServiceTest, CountsConnectionsFromTheirBeginningToTheirEnd) {
  const TestSession session = OpenClient();
  EXPECT_EQ(server_->connections(), 0u);
  AllocateOne(session, 1);
  EXPECT_TRUE(WaitFor([this] { return server_->connections() == 1; }));
  {
    std::vector<std::unique_ptr<grpc::health::v1::Health::Stub>> stubs;
    for (int i = 0; i < 10; ++i) {
      stubs.push_back(grpc::health::v1::Health::NewStub(NewChannel()));
      grpc::health::v1::HealthCheckResponse response;
      CallContext context;
      ASSERT_TRUE(stubs.back()->Check(context.get(), {}, &response).ok());
    }
    EXPECT_EQ(server_->connections(), 11u);
  }
  EXPECT_TRUE(WaitFor([this] { return server_->connections() == 1; }));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A daemon with two devices over the wire: which call goes where.
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TwoDevicesTest : public ServerFixture {
 protected:
  TwoDevicesTest() : ServerFixture(2) {}

  v1::OpenSegmentResponse OpenSegment(const TestSession& session, uint32_t device) {
    v1::OpenSegmentRequest request = CreateRequest("weights");
    request.set_device_index(device);
    v1::OpenSegmentResponse response;
    CallContext context(session);
    const grpc::Status status = memory_->OpenSegment(context.get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::ListLeasesResponse ListLeases(const v1::ListLeasesRequest& request) {
    v1::ListLeasesResponse response;
    CallContext context;
    const grpc::Status status = stats_->ListLeases(context.get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // Block ids of all pages.
  std::vector<uint64_t> ListAllLeases(v1::ListLeasesRequest request) {
    std::vector<uint64_t> seen;
    for (int page = 0; page < 100; ++page) {
      const v1::ListLeasesResponse response = ListLeases(request);
      EXPECT_TRUE(request.page_size() == 0 ||
                  response.leases_size() <= static_cast<int>(request.page_size()));
      for (const v1::LeaseInfo& lease : response.leases()) seen.push_back(lease.block_id());
      if (response.next_page_token().empty()) return seen;
      request.set_page_token(response.next_page_token());
    }
    ADD_FAILURE() << "the pages do not end";
    return seen;
  }

  const TestSession session_ = OpenClient();
};

TEST_F(TwoDevicesTest, MemoryComesFromTheDeviceThatIsNamedElseFromTheFirst) {
  EXPECT_EQ(AllocateOne(session_, 1).device_index(), 0u);
  EXPECT_EQ(AllocateOne(session_, 1, 1).device_index(), 1u);
  EXPECT_EQ(device_.counts().allocations, 1u);
  EXPECT_EQ(second_device_.counts().allocations, 1u);
}

TEST_F(TwoDevicesTest, ADeviceThatIsNotThereIsNamed) {
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  request.set_device_index(2);
  v1::AllocateResponse response;
  CallContext context(session_);
  grpc::Status status = memory_->Allocate(context.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("device_index: is 2"));
  v1::OpenSegmentRequest open = CreateRequest("weights");
  open.set_device_index(4294967295u);
  v1::OpenSegmentResponse opened;
  CallContext open_context(session_);
  EXPECT_THAT(memory_->OpenSegment(open_context.get(), open, &opened).error_message(),
              StartsWith("device_index: "));
  v1::ReleaseRequest release;
  release.set_request_id(1);
  release.set_device_index(2);
  EXPECT_THAT(Release(session_, release).error_message(), StartsWith("device_index: "));
}

TEST_F(TwoDevicesTest, ReleasesBlocksOfOneDeviceAtATime) {
  const uint64_t first = AllocateOne(session_, 1, 0).block_id();
  const uint64_t second = AllocateOne(session_, 1, 1).block_id();
  const grpc::Status status = Release(session_, {first, second});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("block_ids[1]: "));
  EXPECT_THAT(status.error_message(), HasSubstr("one call for each device"));
  EXPECT_EQ(broker_.Holdings(session_.session.id).leased_blocks, 1u);
  EXPECT_EQ(second_broker_.Holdings(session_.session.id).leased_blocks, 1u);
  EXPECT_TRUE(Release(session_, {second}).ok());
  EXPECT_TRUE(Release(session_, {first}).ok());
  EXPECT_TRUE(NothingHeld(session_));
}

TEST_F(TwoDevicesTest, AnswersTheSameForABlockOfNoDeviceAsForAnUnknownOne) {
  const uint64_t mine = AllocateOne(session_, 1).block_id();
  for (const uint64_t unknown : {mine + kMaxDevices, mine + 1, mine + 2, mine + 63}) {
    const grpc::Status status = Release(session_, {unknown});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << unknown;
    EXPECT_THAT(status.error_message(), HasSubstr(std::to_string(unknown)));
  }
}

TEST_F(TwoDevicesTest, EachHasItsOwnSegments) {
  const v1::OpenSegmentResponse first = OpenSegment(session_, 0);
  const v1::OpenSegmentResponse second = OpenSegment(session_, 1);
  EXPECT_TRUE(first.writer() && second.writer());
  EXPECT_NE(first.segment_id(), second.segment_id());
  EXPECT_EQ(second.blocks(0).device_index(), 1u);
  v1::SealSegmentRequest seal;
  seal.set_segment_id(second.segment_id());
  seal.mutable_checksum()->set_low(7);
  v1::SealSegmentResponse sealed;
  CallContext seal_context(session_);
  ASSERT_TRUE(memory_->SealSegment(seal_context.get(), seal, &sealed).ok());

  v1::ListSegmentsResponse list;
  CallContext list_context(session_);
  ASSERT_TRUE(stats_->ListSegments(list_context.get(), {}, &list).ok());
  ASSERT_EQ(list.segments_size(), 2);
  EXPECT_EQ(list.segments(0).state(), v1::SegmentInfo::STATE_FILLING);
  EXPECT_EQ(list.segments(1).state(), v1::SegmentInfo::STATE_SEALED);
  EXPECT_EQ(list.segments(1).device_index(), 1u);

  for (const v1::OpenSegmentResponse& opened : {first, second}) {
    v1::CloseSegmentRequest close;
    close.set_segment_id(opened.segment_id());
    v1::CloseSegmentResponse closed;
    CallContext close_context(session_);
    EXPECT_TRUE(memory_->CloseSegment(close_context.get(), close, &closed).ok());
  }
  EXPECT_TRUE(NothingHeld(session_));
}

TEST_F(TwoDevicesTest, StatisticsShowBothAndSessionsTheSum) {
  const uint64_t first = AllocateOne(session_, 1, 0).allocation_size();
  const uint64_t second = AllocateOne(session_, 100'000, 1).allocation_size();
  OpenSegment(session_, 1);
  v1::GetStatsResponse stats;
  CallContext stats_context;
  ASSERT_TRUE(stats_->GetStats(stats_context.get(), {}, &stats).ok());
  ASSERT_EQ(stats.devices_size(), 2);
  EXPECT_EQ(stats.devices(1).device().index(), 1u);
  EXPECT_EQ(stats.devices(1).device().name(), "second device");
  EXPECT_EQ(stats.devices(1).segments(), 1u);
  v1::ListSessionsResponse sessions;
  CallContext sessions_context;
  ASSERT_TRUE(stats_->ListSessions(sessions_context.get(), {}, &sessions).ok());
  EXPECT_EQ(sessions.sessions(0).leased_blocks(), 2u);
  EXPECT_EQ(sessions.sessions(0).leased_bytes(), first + second);
  EXPECT_EQ(sessions.sessions(0).attached_segments(), 1u);
}

TEST_F(TwoDevicesTest, ListsLeasesByDeviceThenByBlockWhateverThePagesSize) {
  std::vector<uint64_t> expected;
  for (uint32_t device : {0u, 1u}) {
    for (int i = 0; i < 5; ++i) {
      expected.push_back(AllocateOne(session_, 1, device).block_id());
    }
  }
  for (uint32_t page_size : {0u, 1u, 2u, 3u, 5u, 10u, 1000u}) {
    v1::ListLeasesRequest request;
    request.set_page_size(page_size);
    EXPECT_EQ(ListAllLeases(request), expected) << page_size;
  }
}

TEST_F(TwoDevicesTest, ListsOneSessionsLeasesOnly) {
  const TestSession other = OpenClient(1001);
  std::vector<uint64_t> expected;
  for (int i = 0; i < 6; ++i) {
    AllocateOne(session_, 1, i % 2);
    if (i % 2 == 1) expected.push_back(AllocateOne(other, 1, 1).block_id());
  }
  for (uint32_t page_size : {1u, 2u, 3u, 4u}) {
    v1::ListLeasesRequest request;
    request.set_page_size(page_size);
    request.set_session_id(other.session.id.value());
    EXPECT_EQ(ListAllLeases(request), expected) << page_size;
  }
  v1::ListLeasesRequest nobodys;
  nobodys.set_session_id(4711);
  EXPECT_TRUE(ListAllLeases(nobodys).empty());
}

TEST_F(TwoDevicesTest, ShowsWhatALeaseIs) {
  const v1::Block block = AllocateOne(session_, 1000, 1);
  const v1::LeaseInfo lease = ListLeases({}).leases(0);
  EXPECT_EQ(lease.block_id(), block.block_id());
  EXPECT_EQ(lease.session_id(), session_.session.id.value());
  EXPECT_EQ(lease.uid(), kTenant);
  EXPECT_EQ(lease.device_index(), 1u);
  EXPECT_EQ(lease.pool(), second_broker_.Stats().pools[0].name);
  EXPECT_EQ(lease.size(), 1000u);
  EXPECT_EQ(lease.allocated_bytes(), block.allocation_size());
}

TEST_F(TwoDevicesTest, RefusesPagesOfLeasesThatAreNone) {
  v1::ListLeasesRequest request;
  const auto refused = [&] {
    v1::ListLeasesResponse response;
    CallContext context;
    const grpc::Status status = stats_->ListLeases(context.get(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  request.set_page_size(1001);
  EXPECT_THAT(refused(), StartsWith("page_size: is 1001"));
  request.set_page_size(1);
  // The last two name devices that are not there.
  for (const char* token : {"x", "-1", "99999999999999999999", "66", "18446744073709551615"}) {
    request.set_page_token(token);
    EXPECT_THAT(refused(), StartsWith("page_token: ")) << token;
  }
}

TEST_F(TwoDevicesTest, ADeviceThatHangsDelaysNobodyOnTheOther) {
  const uint64_t block = AllocateOne(session_, 1000, 1).block_id();
  EXPECT_TRUE(Release(session_, {block}).ok());
  executor_.HoldAllocations();
  // Both share the test's threads, so the other one is served from its pool.
  std::thread hanging([&] { AllocateOne(session_, 1000, 0); });
  EXPECT_TRUE(WaitFor([this] { return executor_.waiting_allocations() == 1; }));
  EXPECT_EQ(AllocateOne(session_, 1000, 1).device_index(), 1u);
  executor_.Resume();
  hanging.join();
}

// A session that only the second device has let in, as the session edge leaves it
// where the first is a software device that serves another tenant.
class HalfHiddenDevicesTest : public TwoDevicesTest {
 protected:
  HalfHiddenDevicesTest() { broker_.EndSession(session_.session.id); }
};

TEST_F(HalfHiddenDevicesTest, SaysThatADeviceDoesNotServeTheSession) {
  AllocateOne(session_, 1, 1);
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  v1::AllocateResponse response;
  CallContext context(session_);
  grpc::Status status = memory_->Allocate(context.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), StartsWith("device_index: device 0 "));
  v1::OpenSegmentResponse opened;
  CallContext open_context(session_);
  status = memory_->OpenSegment(open_context.get(), CreateRequest("weights"), &opened);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(HalfHiddenDevicesTest, ASessionThatHasEndedIsStillToldThatItHas) {
  End(session_);
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  v1::AllocateResponse response;
  CallContext context(session_);
  EXPECT_EQ(memory_->Allocate(context.get(), request, &response).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace heapbroker

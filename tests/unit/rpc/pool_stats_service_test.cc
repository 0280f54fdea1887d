// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pool_stats_service.h"

#include <fcntl.h>

#include <string>
#include <vector>

#include "common/posix/descriptors.h"
#include "common/posix/unique_fd.h"
#include "gmock/gmock.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using testing::StartsWith;

class PoolStatsServiceTest : public ServerFixture {
 protected:
  v1::GetStatsResponse GetStats() {
    v1::GetStatsResponse response;
    CallContext context;
    const grpc::Status status = stats_->GetStats(context.get(), {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::ListSessionsResponse ListSessions(CallContext& context,
                                        const v1::ListSessionsRequest& request = {}) {
    v1::ListSessionsResponse response;
    const grpc::Status status = stats_->ListSessions(context.get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  void CreateSegment(const TestSession& session, const std::string& name) {
    v1::OpenSegmentResponse response;
    CallContext context(session);
    EXPECT_TRUE(memory_->OpenSegment(context.get(), CreateRequest(name), &response).ok());
  }
};

TEST_F(PoolStatsServiceTest, ShowsTheDaemonAndItsDevice) {
  const TestSession session = OpenClient();
  OpenObserver();
  AllocateOne(session, 100'000);
  CreateSegment(session, "weights");

  const v1::GetStatsResponse stats = GetStats();
  EXPECT_EQ(stats.version(), "1.2.3");
  EXPECT_EQ(stats.start_time().seconds(), 1'700'000'000);
  EXPECT_EQ(stats.client_sessions(), 1u);
  EXPECT_EQ(stats.observer_sessions(), 1u);
  ASSERT_EQ(stats.devices_size(), 1);
  const v1::DeviceStats& device = stats.devices(0);
  EXPECT_EQ(device.device().name(), "simulated device");
  EXPECT_EQ(device.allocations(), 2u);
  EXPECT_EQ(device.segments(), 1u);
  ASSERT_EQ(device.heaps_size(), 1);
  EXPECT_EQ(device.heaps(0).budget(), MiB(64).count());
  ASSERT_GE(device.pools_size(), 2);
  EXPECT_EQ(device.pools(0).leased_blocks(), 1u);
  EXPECT_EQ(device.pools(0).requests(), 1u);
  EXPECT_EQ(device.pools(0).misses(), 1u);
  EXPECT_EQ(device.pools(0).miss_reasons().no_idle_block(), 1u);
  EXPECT_EQ(device.pools(0).memory_property_flags(), 0xFu);
  EXPECT_EQ(device.pools(device.pools_size() - 1).name(), "direct");
  uint64_t allocated = 0;
  for (const v1::PoolStatsRow& pool : device.pools()) allocated += pool.leased_bytes();
  EXPECT_EQ(allocated, device.heaps(0).in_use());
}

TEST_F(PoolStatsServiceTest, CountsOpenDescriptors) {
  // More than those that come and go by themselves while a server and a client start.
  constexpr uint64_t kMore = 50;
  const uint64_t before = GetStats().open_descriptors();
  std::vector<UniqueFd> more;
  while (more.size() < kMore) more.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  v1::GetStatsResponse after;
  // The figure may be a second old.
  EXPECT_TRUE(WaitFor([&] {
    after = GetStats();
    return after.open_descriptors() == OpenDescriptorCount();
  })) << after.open_descriptors();
  EXPECT_GT(after.open_descriptors() + 10, before + kMore);
  EXPECT_LT(after.open_descriptors(), before + kMore + 10);
  EXPECT_GT(after.max_descriptors(), after.open_descriptors());
}

TEST_F(PoolStatsServiceTest, ShowsNamesAndPidsToTheirTenantRootAndTheDaemonsUserOnly) {
  const TestSession owner = OpenClient(1000);
  CreateSegment(owner, "weights");
  const auto shown_to = [&](CallContext&& sessions_context, CallContext&& segments_context) {
    const v1::ListSessionsResponse sessions = ListSessions(sessions_context);
    v1::ListSegmentsResponse segments;
    EXPECT_TRUE(stats_->ListSegments(segments_context.get(), {}, &segments).ok());
    EXPECT_EQ(sessions.sessions(0).uid(), 1000u);
    EXPECT_EQ(segments.segments(0).uid(), 1000u);
    EXPECT_EQ(sessions.sessions(0).pid() != 0, !sessions.sessions(0).name().empty());
    EXPECT_EQ(sessions.sessions(0).name().empty(), segments.segments(0).name().empty());
    return !sessions.sessions(0).name().empty();
  };
  const auto shown_to_session = [&](const TestSession& viewer) {
    return shown_to(CallContext(viewer), CallContext(viewer));
  };
  EXPECT_TRUE(shown_to_session(owner));
  EXPECT_TRUE(shown_to_session(OpenObserver(1000)));
  EXPECT_TRUE(shown_to_session(OpenObserver(0)));
  EXPECT_TRUE(shown_to_session(OpenObserver(kDaemonUid)));
  EXPECT_FALSE(shown_to_session(OpenClient(1001)));
  EXPECT_FALSE(shown_to(CallContext(), CallContext()));
}

TEST_F(PoolStatsServiceTest, RefusesATokenThatHasEnded) {
  const TestSession session = OpenClient();
  End(session);
  v1::GetStatsResponse stats;
  CallContext stats_context(session);
  EXPECT_EQ(stats_->GetStats(stats_context.get(), {}, &stats).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  v1::ListSessionsResponse sessions;
  CallContext sessions_context(session);
  EXPECT_EQ(stats_->ListSessions(sessions_context.get(), {}, &sessions).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(PoolStatsServiceTest, ListsWhatASessionHolds) {
  const TestSession session = OpenClient();
  const v1::Block block = AllocateOne(session, 1000);
  CreateSegment(session, "weights");
  CallContext context(session);
  const v1::ListSessionsResponse response = ListSessions(context);
  ASSERT_EQ(response.sessions_size(), 1);
  const v1::SessionInfo& info = response.sessions(0);
  EXPECT_EQ(info.session_id(), session.session.id.value());
  EXPECT_EQ(info.name(), "a client");
  EXPECT_EQ(info.pid(), 4711);
  EXPECT_EQ(info.gid(), 1001u);
  EXPECT_FALSE(info.observer());
  EXPECT_EQ(info.leased_blocks(), 1u);
  EXPECT_EQ(info.leased_bytes(), block.allocation_size());
  EXPECT_EQ(info.attached_segments(), 1u);
}

TEST_F(PoolStatsServiceTest, LeavesObserversOutUnlessAsked) {
  OpenClient();
  OpenObserver();
  CallContext without;
  EXPECT_EQ(ListSessions(without).sessions_size(), 1);
  v1::ListSessionsRequest request;
  request.set_include_observers(true);
  CallContext with;
  EXPECT_EQ(ListSessions(with, request).sessions_size(), 2);
}

TEST_F(PoolStatsServiceTest, PagesSessionsThoughOnesEndBetweenThePages) {
  std::vector<TestSession> sessions;
  for (int i = 0; i < 7; ++i) sessions.push_back(OpenClient());
  v1::ListSessionsRequest request;
  request.set_page_size(3);
  std::vector<uint64_t> seen;
  for (int page = 0; page < 10; ++page) {
    CallContext context;
    const v1::ListSessionsResponse response = ListSessions(context, request);
    EXPECT_LE(response.sessions_size(), 3);
    for (const v1::SessionInfo& info : response.sessions()) seen.push_back(info.session_id());
    if (page == 0) End(sessions[2]);  // The one that the token names.
    if (response.next_page_token().empty()) break;
    request.set_page_token(response.next_page_token());
  }
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(PoolStatsServiceTest, PagesSegments) {
  const TestSession session = OpenClient();
  for (const char* name : {"a", "b", "c", "d"}) CreateSegment(session, name);
  v1::ListSegmentsRequest request;
  request.set_page_size(2);
  std::vector<std::string> seen;
  for (int page = 0; page < 10; ++page) {
    CallContext context(session);
    v1::ListSegmentsResponse response;
    ASSERT_TRUE(stats_->ListSegments(context.get(), request, &response).ok());
    for (const v1::SegmentInfo& info : response.segments()) {
      EXPECT_EQ(info.state(), v1::SegmentInfo::STATE_FILLING);
      seen.push_back(info.name());
    }
    if (response.next_page_token().empty()) break;
    EXPECT_EQ(response.segments_size(), 2);
    request.set_page_token(response.next_page_token());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_F(PoolStatsServiceTest, RefusesPagesThatAreNone) {
  v1::ListSessionsRequest request;
  request.set_page_size(1001);
  v1::ListSessionsResponse response;
  CallContext too_large;
  grpc::Status status = stats_->ListSessions(too_large.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("page_size: is 1001"));
  request.set_page_size(1000);
  for (const char* token : {"x", "-1", "1x", "99999999999999999999"}) {
    request.set_page_token(token);
    CallContext context;
    status = stats_->ListSessions(context.get(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << token;
    EXPECT_THAT(status.error_message(), StartsWith("page_token: ")) << token;
  }
}

}  // namespace
}  // namespace heapbroker

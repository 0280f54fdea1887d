// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a client costs that keeps to no rule of HTTP/2, and what is left for others.
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/posix/unix_socket.h"
#include "gmock/gmock.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/raw_http2_client.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using grpc::health::v1::HealthCheckResponse;
using testing::HasSubstr;
using Window = RawHttp2Client::Window;

constexpr char kGetStats[] = "/heapbroker.v1.PoolStats/GetStats";
constexpr char kAllocate[] = "/heapbroker.v1.MemoryBroker/Allocate";
constexpr char kHealthWatch[] = "/grpc.health.v1.Health/Watch";

class ServerLimitsTest : public ServerFixture {
 protected:
  // Another server over the same services, for `options`.
  void StartOther(const RpcServerOptions& options) {
    absl::StatusOr<UniqueFd> listener = ListenUnix(other_path_, SocketKind::kStream, 0600);
    ASSERT_TRUE(listener.ok()) << listener.status();
    auto server = StartServer(*std::move(listener), options);
    ASSERT_TRUE(server.ok()) << server.status();
    other_ = *std::move(server);
    other_channel_ = grpc::CreateChannel("unix:" + other_path_, grpc::InsecureChannelCredentials());
  }
  static grpc::Status Check(const std::shared_ptr<grpc::Channel>& channel) {
    HealthCheckResponse response;
    CallContext context;
    return grpc::health::v1::Health::NewStub(channel)->Check(context.get(), {}, &response);
  }
  // GetStats of a session.
  static grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel,
                          const TestSession& session) {
    v1::GetStatsResponse response;
    CallContext context(session);
    return v1::PoolStats::NewStub(channel)->GetStats(context.get(), {}, &response);
  }
  static bool Start(RawHttp2Client& client, int count, const RawHttp2Client::Call& call) {
    for (int i = 0; i < count; ++i) {
      client.Read();
      if (!client.StartCall(call)) return false;
    }
    return true;
  }

  const std::string path_ = directory_.File("broker.sock");
  const std::string other_path_ = directory_.File("other.sock");
  std::unique_ptr<RpcServer> other_;
  std::shared_ptr<grpc::Channel> other_channel_;
};

// The limit on one connection's calls binds only clients that acknowledge it.
TEST_F(ServerLimitsTest, WhoAcknowledgesNothingHasNoMoreWatchesThanThereMayBe) {
  constexpr int kWatches = 5000;
  constexpr size_t kMost = 512;
  const TestSession session = OpenClient();
  RawHttp2Client client(path_, Window::kLargest);
  ASSERT_TRUE(Start(client, kWatches, {kHealthWatch}));
  EXPECT_TRUE(WaitFor([&] { return client.Read().ended >= kWatches - kMost; }));
  EXPECT_TRUE(Check(channel_).ok());
  AllocateOne(session, 1);
  const absl::Time begin = absl::Now();
  server_->Shutdown();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(2));
}

TEST_F(ServerLimitsTest, WatchesOfServicesThatAreNotHereCountAsWell) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("nothing");
  RawHttp2Client client(path_, Window::kLargest);
  ASSERT_TRUE(Start(client, 600, {kHealthWatch, request.SerializeAsString()}));
  EXPECT_TRUE(WaitFor([&] { return client.Read().ended >= 600 - 512; }));
}

TEST_F(ServerLimitsTest, WatchesThatEndMakeRoomForOthers) {
  {
    RawHttp2Client client(path_, Window::kLargest);
    ASSERT_TRUE(Start(client, 600, {kHealthWatch}));
    ASSERT_TRUE(WaitFor([&] { return client.Read().ended >= 600 - 512; }));
  }
  EXPECT_TRUE(WaitFor([&] {
    CallContext context;
    const auto watch = health_->Watch(context.get(), {});
    HealthCheckResponse response;
    const bool begun = watch->Read(&response);
    context.get()->TryCancel();
    return begun;
  }));
}

// Calls whose answers their client does not let out of the daemon.
TEST_F(ServerLimitsTest, CallsThatNobodyReadsAreBoundedAndLeaveRoomForSessionsAndAdministrators) {
  RpcServerOptions options;
  options.max_calls = {.all = 40, .without_session = 10, .reserved = 2};
  StartOther(options);
  const TestSession session = OpenClient();
  const TestSession root = OpenObserver(0);
  RawHttp2Client nobody(other_path_, Window::kNone);
  ASSERT_TRUE(Start(nobody, 30, {kGetStats}));
  ASSERT_TRUE(WaitFor([&] { return nobody.Read().ended == 20; }));
  const grpc::Status check = Check(other_channel_);
  EXPECT_EQ(check.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(check.error_message(), HasSubstr("10 of 10 calls without a session"));
  EXPECT_TRUE(Ask(other_channel_, session).ok());
  {
    RawHttp2Client client(other_path_, Window::kNone);
    ASSERT_TRUE(Start(client, 50, {kGetStats, "", session.token}));
    ASSERT_TRUE(WaitFor([&] { return client.Read().ended == 20; }));
    const grpc::Status asked = Ask(other_channel_, session);
    EXPECT_EQ(asked.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(asked.error_message(), HasSubstr("40 of 40 calls"));
    EXPECT_TRUE(Ask(other_channel_, root).ok());
  }
  EXPECT_TRUE(WaitFor([&] { return Ask(other_channel_, session).ok(); }));
}

// Requests that never arrive in full are no calls yet: only gRPC knows of them.
TEST_F(ServerLimitsTest, UnfinishedRequestsTakeNoMoreMemoryThanThereMayBe) {
  constexpr int kRequests = 4000;
  const std::string begun(16'000, '\0');
  RpcServerOptions options;
  options.max_memory = MiB(16);
  StartOther(options);
  const TestSession session = OpenClient();
  ASSERT_TRUE(Ask(other_channel_, session).ok());
  RawHttp2Client client(other_path_, Window::kLargest);
  ASSERT_TRUE(Start(client, kRequests, {kAllocate, begun, session.token, "", 1000}));
  const size_t fit = options.max_memory.count() / begun.size();
  EXPECT_TRUE(WaitFor([&] { return client.Read().reset >= kRequests - fit; }))
      << client.Read().reset;
  EXPECT_TRUE(WaitFor([&] { return Ask(other_channel_, session).ok(); }));
  other_->Shutdown();
}

}  // namespace
}  // namespace heapbroker

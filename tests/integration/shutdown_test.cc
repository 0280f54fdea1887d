// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// SIGTERM in the middle of everything that can be going on.
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/posix/unix_socket.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/raw_session.h"

namespace heapbroker {
namespace {

namespace health = grpc::health::v1;

// A blocking call on a thread of its own.
class CallThread {
 public:
  using Call = std::function<grpc::Status(grpc::ClientContext&)>;

  explicit CallThread(Call call)
      : thread_([this, call = std::move(call)] { end_.set_value(call(context_)); }) {}
  ~CallThread() {
    context_.TryCancel();
    thread_.join();
  }

  // Whether the call ends within `limit`.
  bool Ended(absl::Duration limit) const {
    return ended_.wait_for(absl::ToChronoMilliseconds(limit)) == std::future_status::ready;
  }
  // How it ended.
  grpc::Status End() const { return ended_.get(); }

 private:
  grpc::ClientContext context_;
  std::promise<grpc::Status> end_;
  std::shared_future<grpc::Status> ended_ = end_.get_future().share();
  std::thread thread_;  // Uses all of the others.
};

class ShutdownTest : public DaemonFixture {
 protected:
  static constexpr int kClients = 4;
  static constexpr int kWatches = 50;
  static constexpr int kOpens = 20;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemon());
    ASSERT_NO_FATAL_FAILURE(StartClients());
    ASSERT_NO_FATAL_FAILURE(StartWatches());
    ASSERT_NO_FATAL_FAILURE(StartOpens());
    // A connection that has begun HTTP/2 and goes no further, and one that never
    // says hello.
    ASSERT_OK_AND_ASSIGN(
        half_open_, ConnectUnix(SocketPath("broker.sock"), SocketKind::kStream, absl::Seconds(5)));
    ASSERT_EQ(send(half_open_.get(), "PRI * HTTP", 10, MSG_NOSIGNAL), 10);
    ASSERT_OK_AND_ASSIGN(
        silent_, ConnectUnix(SocketPath("session.sock"), SocketKind::kSeqPacket, absl::Seconds(5)));
  }

  void StartClients() {
    for (int i = 0; i < kClients; ++i) {
      clients_.push_back(StartClient());
      ASSERT_TRUE(clients_.back() != nullptr);
      ASSERT_THAT(clients_.back()->Send("churn 65536"), IsOk());
    }
    ASSERT_TRUE(WaitFor([this] {
      const v1::GetStatsResponse stats = Stats();
      uint64_t requests = 0;
      for (const v1::DeviceStats& device : stats.devices()) {
        for (const v1::PoolStatsRow& pool : device.pools()) requests += pool.requests();
      }
      return requests > 20 * kClients;
    }));
  }

  void StartWatches() {
    health_ = health::Health::NewStub(channel_);
    for (int i = 0; i < kWatches; ++i) {
      watches_.emplace_back([this](grpc::ClientContext& context) { return Watch(context); });
    }
    ASSERT_TRUE(WaitFor([this] { return serving_ == kWatches; }));
  }

  grpc::Status Watch(grpc::ClientContext& context) {
    const auto stream = health_->Watch(&context, {});
    health::HealthCheckResponse response;
    while (stream->Read(&response)) {
      if (response.status() == health::HealthCheckResponse::SERVING) ++serving_;
    }
    return stream->Finish();
  }

  void StartOpens() {
    ASSERT_OK_AND_ASSIGN(RawSession writer, RawSession::Open(SocketPath("session.sock"), channel_));
    writer_ = std::make_unique<RawSession>(std::move(writer));
    ASSERT_OK_AND_ASSIGN(const auto filling, writer_->OpenSegment("filling", 65536));
    ASSERT_TRUE(filling.writer());
    memory_ = v1::MemoryBroker::NewStub(channel_);
    for (int i = 0; i < kOpens; ++i) {
      ASSERT_OK_AND_ASSIGN(RawSession waiter,
                           RawSession::Open(SocketPath("session.sock"), channel_));
      opens_.emplace_back([this, token = waiter.token()](grpc::ClientContext& context) {
        return OpenFilling(context, token);
      });
      waiters_.push_back(std::move(waiter));
    }
    ASSERT_TRUE(WaitFor([this] { return WaitingSessions() == kOpens; }));
  }

  grpc::Status OpenFilling(grpc::ClientContext& context, const std::string& token) {
    Prepare(context, token);
    v1::OpenSegmentRequest request;
    request.set_name("filling");
    request.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
    request.set_size(65536);
    v1::OpenSegmentResponse response;
    return memory_->OpenSegment(&context, request, &response);
  }

  std::vector<std::unique_ptr<ClientProcess>> clients_;
  std::unique_ptr<health::Health::Stub> health_;
  std::unique_ptr<v1::MemoryBroker::Stub> memory_;
  std::unique_ptr<RawSession> writer_;
  std::vector<RawSession> waiters_;
  UniqueFd half_open_;
  UniqueFd silent_;
  std::atomic<int> serving_ = 0;
  std::deque<CallThread> watches_;
  std::deque<CallThread> opens_;
};

TEST_F(ShutdownTest, EndsWithinFiveSecondsUnderLoadAndEveryCallEnds) {
  const absl::StatusOr<ExitStatus> ended = daemon_->Stop(absl::Seconds(5));
  if (!ended.ok()) static_cast<void>(daemon_->process().Signal(SIGKILL));  // Ends the calls.
  ASSERT_THAT(ended, IsOk());
  EXPECT_EQ(*ended, Exited(0)) << daemon_->Log();

  constexpr absl::Duration kSoon = absl::Seconds(10);
  for (const CallThread& watch : watches_) {
    ASSERT_TRUE(watch.Ended(kSoon));
    EXPECT_FALSE(watch.End().ok());
  }
  for (const CallThread& open : opens_) {
    ASSERT_TRUE(open.Ended(kSoon));
    EXPECT_EQ(open.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  for (const auto& client : clients_) {
    EXPECT_THAT(client->Answer(), StatusIs(absl::StatusCode::kUnavailable, ""));
    ASSERT_OK_AND_ASSIGN(const ExitStatus client_ended, client->Quit());
    EXPECT_EQ(client_ended, Exited(0)) << client->process().ErrorOutput();
  }
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The end of a server, whatever its clients are doing.
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/posix/unix_socket.h"
#include "daemon/rpc/server.h"
#include "tests/support/sanitizer.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/raw_http2_client.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using grpc::health::v1::HealthCheckResponse;

// Of this process. Not all descriptors: gRPC makes some of its own when it first needs them.
size_t OpenSockets() {
  size_t sockets = 0;
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_since;
    const auto what = std::filesystem::read_symlink(descriptor, closed_since);
    if (what.string().rfind("socket:", 0) == 0) ++sockets;
  }
  return sockets;
}

// Whoever does not read or answer would be waited for without limit.
constexpr absl::Duration kSoon = kHasSanitizer ? absl::Seconds(10) : absl::Seconds(2);

class ServerShutdownTest : public ServerFixture {
 protected:
  absl::Duration TimedShutdown() {
    const absl::Time begin = absl::Now();
    server_->Shutdown();
    return absl::Now() - begin;
  }

  const std::string path_ = directory_.File("broker.sock");
};

TEST_F(ServerShutdownTest, EndsAtOnceWhenNobodyIsThere) {
  EXPECT_LT(TimedShutdown(), absl::Seconds(1));
}

TEST_F(ServerShutdownTest, CanBeAskedForTwice) {
  AllocateOne(OpenClient(), 1);
  server_->Shutdown();
  server_->Shutdown();
}

TEST_F(ServerShutdownTest, IsSeenByClientsAsUnavailable) {
  const TestSession session = OpenClient();
  AllocateOne(session, 1);
  server_->Shutdown();
  v1::GetStatsResponse response;
  CallContext context;
  EXPECT_EQ(stats_->GetStats(context.get(), {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServerShutdownTest, EndsEveryWatchAndEveryStreamOfStatistics) {
  constexpr int kEach = 20;
  std::vector<TestSession> sessions;
  std::vector<std::unique_ptr<CallContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>>> watches;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::GetStatsResponse>>> streams;
  v1::WatchStatsRequest often;
  often.mutable_interval()->set_nanos(100'000'000);
  for (int i = 0; i < kEach; ++i) {
    sessions.push_back(OpenClient());
    contexts.push_back(std::make_unique<CallContext>(sessions.back()));
    watches.push_back(memory_->Watch(contexts.back()->get()));
    contexts.push_back(std::make_unique<CallContext>());
    streams.push_back(stats_->WatchStats(contexts.back()->get(), often));
    v1::GetStatsResponse response;
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  AllocateOne(sessions[0], 10'000);
  v1::WatchRequest report;
  report.add_idle()->set_bytes(1000);
  ASSERT_TRUE(watches[0]->Write(report));
  const auto idle = [this] { return broker_.Stats().heaps[0].idle_in_clients; };
  ASSERT_TRUE(WaitFor([&] { return watches_.size() == kEach && idle() == Bytes(1000); }));
  // One that does not read, and has more to read than fits.
  for (int i = 1; i < 20'000; ++i) {
    events_.Deliver(sessions[0].session.id,
                    SegmentSealed{0, SegmentId(64 * i), std::string(1000, 'n')});
  }

  EXPECT_LT(TimedShutdown(), kSoon);

  EXPECT_EQ(watches_.size(), 0u);
  EXPECT_EQ(idle(), Bytes());
  for (int i = 0; i < kEach; ++i) {
    v1::WatchEvent event;
    while (watches[i]->Read(&event)) {
    }
    EXPECT_EQ(watches[i]->Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << i;
    v1::GetStatsResponse response;
    while (streams[i]->Read(&response)) {
    }
    EXPECT_EQ(streams[i]->Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << i;
  }
}

// As a client that calls on and on, never reads, and then says that it will send
// nothing more.
TEST_F(ServerShutdownTest, EndsThoughConnectionsWithUnreadAnswersWereHalfClosed) {
  const size_t before = OpenSockets();
  std::vector<std::unique_ptr<RawHttp2Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawHttp2Client>(path_, RawHttp2Client::Window::kLargest));
    ASSERT_TRUE(clients.back()->connected());
    for (int call = 0; call < 3000; ++call) {
      if (!clients.back()->StartCall({"/heapbroker.v1.PoolStats/GetStats"})) break;
    }
  }
  ASSERT_TRUE(WaitFor([&] { return server_->connections() == clients.size(); }));
  for (const auto& client : clients) client->EndSending();
  EXPECT_TRUE(WaitFor([this] { return server_->connections() == 0; }));
  // The clients' own are still open, and no other.
  EXPECT_TRUE(WaitFor([&] { return OpenSockets() == before + clients.size(); }));
  EXPECT_LT(TimedShutdown(), kSoon);
}

// 50 open streams, 20 waiting calls, a connection that says nothing, one whose
// client was stopped with its socket full, one that allows no byte of an answer, one
// that has said its last word, and clients that call on and on.
TEST_F(ServerShutdownTest, EndsUnderLoadAndTellsEveryCallThatItIsUnavailable) {
  const TestSession writer = OpenClient();
  const TestSession reader = OpenClient();
  v1::OpenSegmentResponse opened;
  CallContext open_context(writer);
  ASSERT_TRUE(memory_->OpenSegment(open_context.get(), CreateRequest("weights"), &opened).ok());

  std::vector<std::thread> waiting;
  std::atomic<int> told_unavailable{0};
  for (int i = 0; i < 20; ++i) {
    waiting.emplace_back([&] {
      v1::OpenSegmentResponse response;
      CallContext context(reader);
      const grpc::Status status =
          memory_->OpenSegment(context.get(), CreateRequest("weights"), &response);
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE) told_unavailable.fetch_add(1);
    });
  }
  std::vector<std::unique_ptr<CallContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>> streams;
  for (int i = 0; i < 50; ++i) {
    contexts.push_back(std::make_unique<CallContext>());
    streams.push_back(health_->Watch(contexts.back()->get(), {}));
    HealthCheckResponse response;
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  RawHttp2Client silent(path_);
  RawHttp2Client stopped(path_);
  RawHttp2Client windowless(path_);
  RawHttp2Client half_closed(path_, RawHttp2Client::Window::kLargest);
  ASSERT_TRUE(silent.connected() && stopped.connected() && windowless.connected() &&
              half_closed.connected());
  for (int call = 0; call < 3000; ++call) {
    if (!half_closed.StartCall({"/heapbroker.v1.PoolStats/GetStats"})) break;
  }
  half_closed.EndSending();
  ASSERT_TRUE(windowless.StartCall({"/grpc.health.v1.Health/Watch"}));
  ASSERT_TRUE(stopped.StartCall({"/grpc.health.v1.Health/Watch"}));
  ASSERT_TRUE(stopped.FillTheServersSocket());
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      const auto stub = v1::MemoryBroker::NewStub(NewChannel());
      while (!stop.load()) {
        v1::AllocateRequest request;
        request.add_blocks()->set_size(1000);
        v1::AllocateResponse response;
        CallContext context(writer);
        (void)stub->Allocate(context.get(), request, &response);
      }
    });
  }
  ASSERT_TRUE(WaitFor([this] {
    const std::vector<SegmentStats> segments = broker_.ListSegments();
    return segments.size() == 1 && segments[0].waiting_calls == 20;
  }));

  EXPECT_LT(TimedShutdown(), kSoon);

  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(told_unavailable.load(), 20);
  for (auto& stream : streams) {
    HealthCheckResponse response;
    while (stream->Read(&response)) {
    }
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  stop.store(true);
  for (std::thread& thread : callers) thread.join();
  EXPECT_TRUE(WaitFor([this] { return pending_.size() == 0; }));
  EXPECT_EQ(broker_.ListSegments()[0].waiting_calls, 0u);
}

TEST_F(ServerShutdownTest, DoesNotWaitForADriverThatHangsAndUndoesWhatItGrantsLater) {
  const TestSession session = OpenClient();
  executor_.HoldAllocations();
  std::thread waiting([&] {
    v1::AllocateRequest request;
    request.add_blocks()->set_size(1000);
    v1::AllocateResponse response;
    CallContext context(session);
    EXPECT_EQ(memory_->Allocate(context.get(), request, &response).error_code(),
              grpc::StatusCode::UNAVAILABLE);
  });
  ASSERT_TRUE(WaitFor([this] { return executor_.waiting_allocations() == 1; }));
  EXPECT_LT(TimedShutdown(), kSoon);
  waiting.join();
  server_.reset();
  executor_.Resume();
  EXPECT_TRUE(WaitFor([&] { return NothingHeld(session); }));
  EXPECT_TRUE(WaitFor([this] { return broker_.Stats().pools[0].leased == Bytes(); }));
}

TEST_F(ServerShutdownTest, IsClosedToConnectionsThatComeLater) {
  server_->Shutdown();
  EXPECT_EQ(ConnectUnix(path_, SocketKind::kStream, absl::Seconds(5)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ServerShutdownTest, EndsInTheMiddleOfConnectionsThatComeAndGo) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!stop.load()) {
        const auto stub = grpc::health::v1::Health::NewStub(NewChannel());
        HealthCheckResponse response;
        CallContext context;
        (void)stub->Check(context.get(), {}, &response);
      }
    });
  }
  EXPECT_TRUE(WaitFor([this] { return server_->connections() > 0; }));
  EXPECT_LT(TimedShutdown(), kSoon);
  stop.store(true);
  for (std::thread& thread : callers) thread.join();
}

}  // namespace
}  // namespace heapbroker

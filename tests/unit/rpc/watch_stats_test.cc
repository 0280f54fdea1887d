// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// PoolStats.WatchStats over the wire.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class StatsStream {
 public:
  StatsStream(v1::PoolStats::Stub& stub, const v1::WatchStatsRequest& request)
      : stream_(stub.WatchStats(context_.get(), request)) {}
  ~StatsStream() {
    if (!finished_) Cancel();
  }

  bool Read(v1::GetStatsResponse& response) { return stream_->Read(&response); }
  grpc::Status Finish() {
    v1::GetStatsResponse response;
    while (stream_->Read(&response)) {
    }
    finished_ = true;
    return stream_->Finish();
  }
  void Cancel() {
    context_.get()->TryCancel();
    Finish();
  }

 private:
  CallContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GetStatsResponse>> stream_;
  bool finished_ = false;
};

class WatchStatsTest : public ServerFixture {
 protected:
  static v1::WatchStatsRequest Every(absl::Duration interval) {
    v1::WatchStatsRequest request;
    request.mutable_interval()->set_seconds(absl::ToInt64Seconds(interval));
    request.mutable_interval()->set_nanos(static_cast<int32_t>(
        absl::ToInt64Nanoseconds(interval - absl::Seconds(absl::ToInt64Seconds(interval)))));
    return request;
  }
  // Error of a stream that is refused.
  grpc::Status Refused(const v1::WatchStatsRequest& request) {
    return StatsStream(*stats_, request).Finish();
  }
};

TEST_F(WatchStatsTest, SendsAtOnceAndAgainAtEveryInterval) {
  const TestSession session = OpenClient();
  StatsStream stream(*stats_, Every(absl::Milliseconds(100)));
  const absl::Time begin = absl::Now();
  v1::GetStatsResponse response;
  ASSERT_TRUE(stream.Read(response));
  EXPECT_EQ(response.devices(0).requests().granted(), broker_.Stats().requests.granted);
  EXPECT_EQ(response.devices(0).pools(0).leased_blocks(), 0u);
  EXPECT_EQ(response.version(), "1.2.3");
  AllocateOne(session, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.Read(response));
  EXPECT_EQ(response.devices(0).pools(0).leased_blocks(), 1u);
  // The first is at once, though the connection may take its time.
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(200));
}

TEST_F(WatchStatsTest, AHourlyOneIsStillAnsweredAtOnce) {
  StatsStream stream(*stats_, Every(absl::Hours(1)));
  v1::GetStatsResponse response;
  EXPECT_TRUE(stream.Read(response));
}

TEST_F(WatchStatsTest, RefusesIntervalsOutOfRangeNamingTheRange) {
  for (const absl::Duration interval :
       {absl::ZeroDuration(), absl::Milliseconds(99), absl::Hours(1) + absl::Nanoseconds(1)}) {
    const grpc::Status status = Refused(Every(interval));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << interval;
    EXPECT_THAT(status.error_message(), StartsWith("interval: is ")) << interval;
    EXPECT_THAT(status.error_message(), HasSubstr("100 ms to 1 h")) << interval;
  }
  v1::WatchStatsRequest negative;
  negative.mutable_interval()->set_seconds(-5);
  EXPECT_THAT(Refused(negative).error_message(), StartsWith("interval: "));
  EXPECT_THAT(Refused({}).error_message(), StartsWith("interval: "));
}

TEST_F(WatchStatsTest, RefusesATokenThatHasEnded) {
  const TestSession session = OpenClient();
  End(session);
  CallContext context(session);
  const auto stream = stats_->WatchStats(context.get(), Every(absl::Seconds(1)));
  v1::GetStatsResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(WatchStatsTest, OneMoreThanThereMayBeIsRefusedUntilOneEnds) {
  std::vector<std::unique_ptr<v1::PoolStats::Stub>> stubs;
  std::vector<std::unique_ptr<StatsStream>> streams;
  v1::GetStatsResponse response;
  for (int i = 0; i < 256; ++i) {
    // No more on one connection than it may have.
    if (i % 128 == 0) stubs.push_back(v1::PoolStats::NewStub(NewChannel()));
    streams.push_back(std::make_unique<StatsStream>(*stubs.back(), Every(absl::Hours(1))));
    ASSERT_TRUE(streams.back()->Read(response)) << i;
  }
  const grpc::Status status = Refused(Every(absl::Hours(1)));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("256"));
  streams.pop_back();
  EXPECT_TRUE(WaitFor([&] {
    StatsStream another(*stats_, Every(absl::Hours(1)));
    return another.Read(response);
  }));
}

// While what they show changes all the time.
TEST_F(WatchStatsTest, WhatManyStreamsCostDoesNotGrowWithTheirNumber) {
  constexpr int kStreams = 100;
  constexpr int kBeats = 5;
  const TestSession session = OpenClient();
  std::atomic<bool> stop{false};
  AllocateRequest never_fits;
  never_fits.blocks.emplace_back().size = MiB(65);
  std::thread changing([&] {
    for (uint64_t call = uint64_t{1} << 32; !stop.load(); ++call) {
      (void)broker_.Allocate(session.session.id, CallId(call), never_fits);
    }
  });
  std::vector<std::unique_ptr<StatsStream>> streams;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<StatsStream>(*stats_, Every(absl::Milliseconds(100))));
  }
  std::set<std::string> different;
  for (int beat = 0; beat < kBeats; ++beat) {
    for (const auto& stream : streams) {
      v1::GetStatsResponse response;
      ASSERT_TRUE(stream->Read(response));
      different.insert(response.SerializeAsString());
    }
  }
  const double lasted = absl::FDivDuration(absl::Now() - begin, absl::Milliseconds(50));
  stop.store(true);
  changing.join();
  // Two threads may each have made one at the same time.
  EXPECT_LE(different.size(), 2 * (lasted + 1));
}

TEST_F(WatchStatsTest, AReaderThatIsSlowGetsTheLatestAndNoHeapOfOldOnes) {
  const TestSession session = OpenClient();
  StatsStream stream(*stats_, Every(absl::Milliseconds(100)));
  v1::GetStatsResponse response;
  ASSERT_TRUE(stream.Read(response));
  uint64_t allocated = 0;
  // Some beats pass unread; the socket keeps a few answers, the daemon none.
  ASSERT_TRUE(WaitFor([&] {
    AllocateOne(session, 1);
    return ++allocated == 50;
  }));
  bool seen = false;
  for (int i = 0; i < 50 && !seen && stream.Read(response); ++i) {
    seen = response.devices(0).pools(0).leased_blocks() == 50;
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace heapbroker

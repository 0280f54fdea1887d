// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// MemoryBroker.Watch over the wire.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/raw_http2_client.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// One Watch of a session, and what its client does.
class WatchClient {
 public:
  WatchClient(v1::MemoryBroker::Stub& stub, const TestSession& session)
      : context_(session), stream_(stub.Watch(context_.get())) {}
  ~WatchClient() {
    if (!finished_) Cancel();
  }

  bool Report(uint64_t bytes, uint32_t device = 0) {
    v1::WatchRequest request;
    request.add_idle()->set_bytes(bytes);
    request.mutable_idle(0)->set_device_index(device);
    return stream_->Write(request);
  }
  bool Send(const v1::WatchRequest& request) { return stream_->Write(request); }
  v1::WatchEvent Read() {
    v1::WatchEvent event;
    EXPECT_TRUE(stream_->Read(&event));
    return event;
  }
  grpc::Status SayAllAndFinish() {
    stream_->WritesDone();
    return Finish();
  }
  // Reads until the daemon has ended the stream.
  grpc::Status Finish() {
    v1::WatchEvent event;
    while (stream_->Read(&event)) {
    }
    finished_ = true;
    return stream_->Finish();
  }
  grpc::Status Cancel() {
    context_.get()->TryCancel();
    return Finish();
  }

 private:
  CallContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>> stream_;
  bool finished_ = false;
};

class WatchTest : public ServerFixture {
 protected:
  explicit WatchTest(size_t device_count = 1) : ServerFixture(device_count) {
    // What is idle in a client is believed up to what it holds.
    AllocateOne(session_, MiB(4).count());
  }

  // A Watch that the daemon knows of.
  std::unique_ptr<WatchClient> Begin(const TestSession& session) {
    const size_t before = watches_.size();
    auto client = std::make_unique<WatchClient>(*memory_, session);
    EXPECT_TRUE(WaitFor([&] { return watches_.size() == before + 1; }));
    return client;
  }
  static Bytes IdleOn(const DeviceBroker& device) {
    return device.Stats().heaps[0].idle_in_clients;
  }
  bool WaitForIdle(Bytes bytes) {
    return WaitFor([this, bytes] { return IdleOn(broker_) == bytes; });
  }
  bool WaitForNoWatch() {
    return WaitFor([this] { return watches_.size() == 0; });
  }
  void Tell(const TestSession& session, Event event) {
    events_.Deliver(session.session.id, std::move(event));
  }
  static SegmentSealed Sealed(uint64_t number) {
    return {0, SegmentId(NumberOnDevice(number, 0)), absl::StrCat("segment ", number)};
  }

  const TestSession session_ = OpenClient();
};

TEST_F(WatchTest, AsksForMemoryBackAndTellsOfSealedSegmentsInOrder) {
  const auto watch = Begin(session_);
  Tell(session_, GiveBackWanted{0, 0, Bytes(77), clock_.Now() + absl::Seconds(60)});
  Tell(session_, Sealed(1));
  const v1::WatchEvent first = watch->Read();
  EXPECT_EQ(first.give_back().bytes(), 77u);
  EXPECT_GT(first.give_back().time().seconds(), 30);
  EXPECT_LE(first.give_back().time().seconds(), 60);
  const v1::WatchEvent second = watch->Read();
  EXPECT_EQ(second.segment_sealed().segment_id(), NumberOnDevice(1, 0));
  EXPECT_EQ(second.segment_sealed().name(), "segment 1");
}

TEST_F(WatchTest, TellsEachSessionItsOwn) {
  const TestSession other = OpenClient();
  const auto watch = Begin(session_);
  const auto others = Begin(other);
  Tell(session_, Sealed(1));
  Tell(other, Sealed(2));
  EXPECT_EQ(watch->Read().segment_sealed().name(), "segment 1");
  EXPECT_EQ(others->Read().segment_sealed().name(), "segment 2");
}

TEST_F(WatchTest, WhoKeepsMemoryIdleIsAskedForItWhenAnotherNeedsIt) {
  const TestSession holder = OpenClient();
  const v1::Block block = AllocateOne(holder, MiB(50).count());
  const auto watch = Begin(holder);
  ASSERT_TRUE(watch->Report(MiB(50).count()));
  ASSERT_TRUE(WaitForIdle(MiB(50)));
  std::thread needing([this] { AllocateOne(session_, MiB(40).count()); });
  const v1::GiveBack asked = watch->Read().give_back();
  EXPECT_EQ(asked.device_index(), 0u);
  EXPECT_EQ(asked.heap_index(), 0u);
  EXPECT_GT(asked.bytes(), 0u);
  EXPECT_LE(asked.time().seconds(), 1);
  EXPECT_TRUE(Release(holder, {block.block_id()}).ok());
  needing.join();
  EXPECT_EQ(broker_.Holdings(session_.session.id).leased_blocks, 2u);
}

TEST_F(WatchTest, SessionsOfTheUserHearThatASegmentIsSealed) {
  const TestSession writer = OpenClient();
  const auto watch = Begin(session_);
  v1::OpenSegmentResponse opened;
  CallContext open_context(writer);
  ASSERT_TRUE(memory_->OpenSegment(open_context.get(), CreateRequest("weights"), &opened).ok());
  v1::SealSegmentRequest seal;
  seal.set_segment_id(opened.segment_id());
  seal.mutable_checksum()->set_low(7);
  v1::SealSegmentResponse sealed;
  CallContext seal_context(writer);
  ASSERT_TRUE(memory_->SealSegment(seal_context.get(), seal, &sealed).ok());
  const v1::SegmentSealed told = watch->Read().segment_sealed();
  EXPECT_EQ(told.segment_id(), opened.segment_id());
  EXPECT_EQ(told.name(), "weights");
}

TEST_F(WatchTest, AClientThatDoesNotReadCostsABoundedQueueAndMissesTheOldest) {
  const auto watch = Begin(session_);
  constexpr int kMany = 100'000;
  // More than gRPC and the socket take, and by far more than the queue holds.
  const std::string name(1000, 'n');
  for (int i = 1; i <= kMany; ++i) Tell(session_, SegmentSealed{0, SegmentId(64 * i), name});
  Tell(session_, Sealed(kMany + 1));
  int read = 1;
  while (watch->Read().segment_sealed().name() != absl::StrCat("segment ", kMany + 1)) ++read;
  EXPECT_LT(read, kMany);
}

TEST_F(WatchTest, BringsReportsToTheCoreEachReplacingTheOneBefore) {
  const auto watch = Begin(session_);
  ASSERT_TRUE(watch->Report(1000));
  EXPECT_TRUE(WaitForIdle(Bytes(1000)));
  ASSERT_TRUE(watch->Report(500));
  EXPECT_TRUE(WaitForIdle(Bytes(500)));
  ASSERT_TRUE(watch->Send({}));
  EXPECT_TRUE(WaitForIdle(Bytes()));
}

TEST_F(WatchTest, TakesReportsBackHoweverItEnds) {
  auto watch = Begin(session_);
  ASSERT_TRUE(watch->Report(1000));
  ASSERT_TRUE(WaitForIdle(Bytes(1000)));
  EXPECT_TRUE(watch->SayAllAndFinish().ok());
  EXPECT_TRUE(WaitForIdle(Bytes()));
  EXPECT_TRUE(WaitForNoWatch());

  watch = Begin(session_);
  ASSERT_TRUE(watch->Report(2000));
  ASSERT_TRUE(WaitForIdle(Bytes(2000)));
  EXPECT_EQ(watch->Cancel().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitForIdle(Bytes()));
  EXPECT_TRUE(WaitForNoWatch());

  {
    RawHttp2Client client(directory_.File("broker.sock"));
    v1::WatchRequest request;
    request.add_idle()->set_bytes(3000);
    ASSERT_TRUE(client.StartCall(
        {"/heapbroker.v1.MemoryBroker/Watch", request.SerializeAsString(), session_.token}));
  }
  EXPECT_TRUE(WaitForIdle(Bytes()));
  EXPECT_TRUE(WaitForNoWatch());
}

TEST_F(WatchTest, EndsWithItsSession) {
  const TestSession session = OpenClient();
  AllocateOne(session, MiB(4).count());
  const auto watch = Begin(session);
  ASSERT_TRUE(watch->Report(1000));
  ASSERT_TRUE(WaitForIdle(Bytes(1000)));
  End(session);
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("the session has ended"));
  EXPECT_EQ(watches_.size(), 0u);
  EXPECT_EQ(IdleOn(broker_), Bytes());
}

TEST_F(WatchTest, ASecondOneEndsTheFirstAndItsReports) {
  const auto first = Begin(session_);
  ASSERT_TRUE(first->Report(1000));
  ASSERT_TRUE(WaitForIdle(Bytes(1000)));
  WatchClient second(*memory_, session_);
  const grpc::Status status = first->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("another Watch"));
  EXPECT_TRUE(WaitForIdle(Bytes()));
  ASSERT_TRUE(second.Report(500));
  EXPECT_TRUE(WaitForIdle(Bytes(500)));
  Tell(session_, Sealed(1));
  EXPECT_EQ(second.Read().segment_sealed().name(), "segment 1");
  EXPECT_EQ(watches_.size(), 1u);
}

TEST_F(WatchTest, ManyThatReplaceEachOtherLeaveNothingBehind) {
  std::vector<std::unique_ptr<WatchClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<WatchClient>(*memory_, session_));
    clients.back()->Report(1000 + i);
  }
  for (auto& client : clients) EXPECT_FALSE(client->Cancel().ok());
  EXPECT_TRUE(WaitForNoWatch());
  EXPECT_TRUE(WaitForIdle(Bytes()));
}

TEST_F(WatchTest, EndsWhoReportsTooOften) {
  const auto watch = Begin(session_);
  int sent = 0;
  while (sent < 100'000 && watch->Report(1000)) ++sent;
  EXPECT_GE(sent, 10);
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("10 messages a second"));
  EXPECT_TRUE(WaitForIdle(Bytes()));
  EXPECT_TRUE(WaitForNoWatch());
}

TEST_F(WatchTest, EndsWithTheNameOfTheFieldThatIsWrongAndChangesNothing) {
  const auto ended_by = [this](uint32_t device, uint32_t heap) {
    const auto watch = Begin(session_);
    v1::WatchRequest request;
    request.add_idle()->set_bytes(1000);
    request.add_idle()->set_device_index(device);
    request.mutable_idle(1)->set_heap_index(heap);
    watch->Send(request);
    const grpc::Status status = watch->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(IdleOn(broker_), Bytes());
    EXPECT_TRUE(WaitForNoWatch());
    return status.error_message();
  };
  EXPECT_THAT(ended_by(1, 0), StartsWith("idle[1].device_index: is 1"));
  EXPECT_THAT(ended_by(4294967295u, 0), StartsWith("idle[1].device_index: "));
  EXPECT_THAT(ended_by(0, 1), StartsWith("idle[1].heap_index: is 1"));
  EXPECT_THAT(ended_by(0, 0), StartsWith("idle[1].heap_index: heap 0"));
}

TEST_F(WatchTest, NeedsAClientsSession) {
  const auto code = [this](CallContext&& context) {
    const auto stream = memory_->Watch(context.get());
    v1::WatchEvent event;
    EXPECT_FALSE(stream->Read(&event));
    return stream->Finish().error_code();
  };
  EXPECT_EQ(code(CallContext()), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(code(CallContext(OpenObserver())), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(watches_.size(), 0u);
}

TEST_F(WatchTest, EndsWithTheNextReportOnceTheSessionHasEnded) {
  const auto watch = Begin(session_);
  End(session_);
  watch->Report(1000);
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(WaitForNoWatch());
}

class WatchOfTwoDevicesTest : public WatchTest {
 protected:
  WatchOfTwoDevicesTest() : WatchTest(2) { AllocateOne(session_, MiB(4).count(), 1); }
};

TEST_F(WatchOfTwoDevicesTest, ADeviceThatIsNotNamedHasNothingIdle) {
  const auto watch = Begin(session_);
  ASSERT_TRUE(watch->Report(1000, 1));
  EXPECT_TRUE(WaitFor([this] { return IdleOn(second_broker_) == Bytes(1000); }));
  EXPECT_EQ(IdleOn(broker_), Bytes());
  ASSERT_TRUE(watch->Report(500, 0));
  EXPECT_TRUE(WaitForIdle(Bytes(500)));
  EXPECT_TRUE(WaitFor([this] { return IdleOn(second_broker_) == Bytes(); }));
  watch->Cancel();
  EXPECT_TRUE(WaitForIdle(Bytes()));
}

}  // namespace
}  // namespace heapbroker

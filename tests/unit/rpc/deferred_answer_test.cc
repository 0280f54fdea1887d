// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Answers that come later, and what becomes of them when nobody waits any more.
#include <atomic>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/wait_for.h"
#include "tests/unit/rpc/raw_http2_client.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

// A call that a thread of its own waits for.
class WaitingOpen {
 public:
  WaitingOpen(v1::MemoryBroker::Stub& stub, const TestSession& session,
              v1::OpenSegmentRequest request, absl::Duration deadline = absl::Seconds(30))
      : context_(session) {
    context_.WithDeadline(deadline);
    thread_ = std::thread([this, &stub, request = std::move(request)] {
      status_ = stub.OpenSegment(context_.get(), request, &response_);
    });
  }
  ~WaitingOpen() {
    if (thread_.joinable()) thread_.join();
  }

  void Cancel() { context_.get()->TryCancel(); }
  const grpc::Status& Join() {
    thread_.join();
    return status_;
  }
  const v1::OpenSegmentResponse& response() const { return response_; }

 private:
  CallContext context_;
  grpc::Status status_;
  v1::OpenSegmentResponse response_;
  std::thread thread_;
};

// Likewise.
class WaitingAllocate {
 public:
  WaitingAllocate(v1::MemoryBroker::Stub& stub, const TestSession& session,
                  v1::AllocateRequest request, absl::Duration deadline = absl::Seconds(30))
      : context_(session) {
    context_.WithDeadline(deadline);
    thread_ = std::thread([this, &stub, request = std::move(request)] {
      status_ = stub.Allocate(context_.get(), request, &response_);
      done_.store(true);
    });
  }
  ~WaitingAllocate() {
    if (thread_.joinable()) thread_.join();
  }

  bool done() const { return done_.load(); }
  const grpc::Status& Join() {
    thread_.join();
    return status_;
  }
  const v1::AllocateResponse& response() const { return response_; }

 private:
  CallContext context_;
  grpc::Status status_;
  v1::AllocateResponse response_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

class DeferredAnswerTest : public ServerFixture {
 protected:
  static v1::AllocateRequest RequestOf(uint64_t size, uint64_t id = 0) {
    v1::AllocateRequest request;
    request.add_blocks()->set_size(size);
    request.set_request_id(id);
    return request;
  }
  static v1::ReleaseRequest UndoOf(uint64_t id) {
    v1::ReleaseRequest request;
    request.set_request_id(id);
    return request;
  }
  bool WaitForWaitingRequests(uint64_t count) {
    return WaitFor([this, count] { return broker_.Stats().heaps[0].waiting_requests == count; });
  }
  v1::OpenSegmentResponse BecomeWriter(const TestSession& session, const std::string& name) {
    v1::OpenSegmentResponse response;
    CallContext context(session);
    EXPECT_TRUE(memory_->OpenSegment(context.get(), CreateRequest(name), &response).ok());
    EXPECT_TRUE(response.writer());
    return response;
  }
  grpc::Status Seal(const TestSession& session, uint64_t segment) {
    v1::SealSegmentRequest request;
    request.set_segment_id(segment);
    request.mutable_checksum()->set_low(7);
    v1::SealSegmentResponse response;
    CallContext context(session);
    return memory_->SealSegment(context.get(), request, &response);
  }
  grpc::Status Close(const TestSession& session, uint64_t segment) {
    v1::CloseSegmentRequest request;
    request.set_segment_id(segment);
    v1::CloseSegmentResponse response;
    CallContext context(session);
    return memory_->CloseSegment(context.get(), request, &response);
  }
  // After a call ended at the client: until the server has seen that, too. Nothing
  // in the core shows it while the device works; but a connection's frames come in
  // order, so later calls on it are answered after. Many, since the queue has
  // several threads.
  void LetTheServerNotice() {
    for (int i = 0; i < 100; ++i) {
      grpc::health::v1::HealthCheckResponse response;
      CallContext context;
      ASSERT_TRUE(health_->Check(context.get(), {}, &response).ok());
    }
  }
  bool WaitForWaiters(uint32_t count) {
    return WaitFor([this, count] {
      const std::vector<SegmentStats> segments = broker_.ListSegments();
      return segments.size() == 1 && segments[0].waiting_calls == count;
    });
  }

  const TestSession writer_ = OpenClient();
  const TestSession reader_ = OpenClient();
};

TEST_F(DeferredAnswerTest, AWaiterGetsTheSegmentWhenItIsSealed) {
  const uint64_t segment = BecomeWriter(writer_, "weights").segment_id();
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"));
  ASSERT_TRUE(WaitForWaiters(1));
  ASSERT_TRUE(Seal(writer_, segment).ok());
  ASSERT_TRUE(waiting.Join().ok());
  EXPECT_FALSE(waiting.response().writer());
  EXPECT_EQ(waiting.response().segment_id(), segment);
  EXPECT_EQ(waiting.response().checksum().low(), 7u);
  EXPECT_EQ(pending_.size(), 0u);
}

TEST_F(DeferredAnswerTest, AWaiterBecomesWriterWhenTheWriterGivesUp) {
  const uint64_t segment = BecomeWriter(writer_, "weights").segment_id();
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"));
  ASSERT_TRUE(WaitForWaiters(1));
  ASSERT_TRUE(Close(writer_, segment).ok());
  ASSERT_TRUE(waiting.Join().ok());
  EXPECT_TRUE(waiting.response().writer());
  EXPECT_NE(waiting.response().segment_id(), segment);
}

TEST_F(DeferredAnswerTest, AWaiterBecomesWriterWhenTheWritersSessionEnds) {
  BecomeWriter(writer_, "weights");
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"));
  ASSERT_TRUE(WaitForWaiters(1));
  End(writer_);
  ASSERT_TRUE(waiting.Join().ok());
  EXPECT_TRUE(waiting.response().writer());
}

TEST_F(DeferredAnswerTest, ACancelledWaiterLeavesTheQueue) {
  const uint64_t segment = BecomeWriter(writer_, "weights").segment_id();
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"));
  ASSERT_TRUE(WaitForWaiters(1));
  waiting.Cancel();
  EXPECT_EQ(waiting.Join().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitForWaiters(0));
  EXPECT_TRUE(WaitFor([this] { return NothingHeld(reader_); }));
  EXPECT_TRUE(Seal(writer_, segment).ok());
  EXPECT_TRUE(NothingHeld(reader_));
}

TEST_F(DeferredAnswerTest, AWaiterWhoseDeadlinePassesLeavesTheQueue) {
  BecomeWriter(writer_, "weights");
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"), absl::Milliseconds(100));
  EXPECT_EQ(waiting.Join().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(WaitForWaiters(0));
  EXPECT_TRUE(WaitFor([this] { return NothingHeld(reader_); }));
}

TEST_F(DeferredAnswerTest, AWaiterWhoseConnectionBreaksLeavesTheQueue) {
  BecomeWriter(writer_, "weights");
  {
    RawHttp2Client client(directory_.File("broker.sock"));
    ASSERT_TRUE(client.StartCall({"/heapbroker.v1.MemoryBroker/OpenSegment",
                                  CreateRequest("weights").SerializeAsString(), reader_.token}));
    ASSERT_TRUE(WaitForWaiters(1));
  }
  EXPECT_TRUE(WaitForWaiters(0));
  EXPECT_TRUE(WaitFor([this] { return NothingHeld(reader_); }));
}

// The wire can name deadlines that no clock of the daemon can.
TEST_F(DeferredAnswerTest, ARequestWhoseDeadlineIsMillenniaAwayWaits) {
  AllocateOne(writer_, MiB(64).count());
  RawHttp2Client client(directory_.File("broker.sock"));
  ASSERT_TRUE(client.StartCall({"/heapbroker.v1.MemoryBroker/Allocate",
                                RequestOf(4096).SerializeAsString(), reader_.token, "99999999H"}));
  EXPECT_TRUE(WaitForWaitingRequests(1));
}

TEST_F(DeferredAnswerTest, AWaiterWhoseSessionEndsIsToldSo) {
  BecomeWriter(writer_, "weights");
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"));
  ASSERT_TRUE(WaitForWaiters(1));
  End(reader_);
  const grpc::Status& status = waiting.Join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(status.error_message(), "the session has ended");
  EXPECT_EQ(pending_.size(), 0u);
}

TEST_F(DeferredAnswerTest, WhatADriverGrantsAfterTheDeadlineIsGivenBack) {
  executor_.HoldAllocations();
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1000);
  v1::AllocateResponse response;
  CallContext context(reader_);
  context.WithDeadline(absl::Milliseconds(100));
  EXPECT_EQ(memory_->Allocate(context.get(), request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  LetTheServerNotice();
  executor_.Resume();
  EXPECT_TRUE(WaitFor([this] { return NothingHeld(reader_); }));
  EXPECT_TRUE(WaitFor([this] { return broker_.Stats().pools[0].leased == Bytes(); }));
}

TEST_F(DeferredAnswerTest, ASegmentGrantedAfterTheDeadlineGoesToTheNextWaiter) {
  executor_.HoldAllocations();
  WaitingOpen gone(*memory_, writer_, CreateRequest("weights"), absl::Milliseconds(100));
  ASSERT_TRUE(WaitFor([this] { return executor_.waiting_allocations() == 1; }));
  WaitingOpen waiting(*memory_, reader_, CreateRequest("weights"));
  EXPECT_EQ(gone.Join().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  LetTheServerNotice();
  executor_.Resume();
  ASSERT_TRUE(waiting.Join().ok());
  EXPECT_TRUE(waiting.response().writer());
  EXPECT_TRUE(WaitFor([this] { return NothingHeld(writer_); }));
}

TEST_F(DeferredAnswerTest, AHungDriverDelaysNobodyWhoIsServedFromTheCache) {
  const v1::Block block = AllocateOne(reader_, 1000);
  v1::ReleaseRequest release;
  release.add_block_ids(block.block_id());
  v1::ReleaseResponse released;
  CallContext context(reader_);
  ASSERT_TRUE(memory_->Release(context.get(), release, &released).ok());
  executor_.HoldAllocations();
  WaitingOpen hanging(*memory_, writer_, CreateRequest("weights"));
  ASSERT_TRUE(WaitFor([this] { return executor_.waiting_allocations() == 1; }));
  AllocateOne(reader_, 1000);
  executor_.Resume();
  EXPECT_TRUE(hanging.Join().ok());
}

TEST_F(DeferredAnswerTest, ARequestWaitsForWhatOthersHold) {
  const v1::Block block = AllocateOne(writer_, MiB(60).count());
  WaitingAllocate waiting(*memory_, reader_, RequestOf(MiB(50).count()));
  ASSERT_TRUE(WaitForWaitingRequests(1));
  ASSERT_TRUE(Release(writer_, {block.block_id()}).ok());
  ASSERT_TRUE(waiting.Join().ok());
  EXPECT_EQ(waiting.response().blocks(0).size(), MiB(50).count());
}

TEST_F(DeferredAnswerTest, ARequestThatWaitedLongEnoughIsRefusedBeforeItsDeadline) {
  AllocateOne(writer_, MiB(60).count());
  const auto refused = [this](const v1::AllocateRequest& request, absl::Duration deadline) {
    WaitingAllocate waiting(*memory_, reader_, request, deadline);
    // The core's alarm, which is the test's.
    EXPECT_TRUE(WaitFor([&] {
      broker_.Tick();
      return waiting.done();
    }));
    const grpc::Status& status = waiting.Join();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_FALSE(status.error_details().empty());
  };
  refused(RequestOf(MiB(50).count()), absl::Seconds(1));
  v1::AllocateRequest request = RequestOf(MiB(50).count());
  request.mutable_max_wait()->set_nanos(50'000'000);
  refused(request, absl::Seconds(30));
  request.mutable_max_wait()->set_nanos(0);
  refused(request, absl::Seconds(30));
  EXPECT_EQ(broker_.Stats().heaps[0].waiting_requests, 0u);
}

TEST_F(DeferredAnswerTest, AskingAgainWithItsIdReturnsTheSameGrant) {
  WaitingAllocate first(*memory_, reader_, RequestOf(1000, 7));
  ASSERT_TRUE(first.Join().ok());
  WaitingAllocate second(*memory_, reader_, RequestOf(1000, 7));
  ASSERT_TRUE(second.Join().ok());
  EXPECT_EQ(first.response().SerializeAsString(), second.response().SerializeAsString());
  EXPECT_EQ(broker_.Holdings(reader_.session.id).leased_blocks, 1u);
  EXPECT_TRUE(Release(reader_, UndoOf(7)).ok());
  EXPECT_TRUE(NothingHeld(reader_));
  EXPECT_EQ(Release(reader_, UndoOf(7)).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(DeferredAnswerTest, ARequestWithAnIdEndsWithItsCallAndCanBeMadeAgain) {
  executor_.HoldAllocations();
  WaitingAllocate gone(*memory_, reader_, RequestOf(1000, 7), absl::Milliseconds(100));
  EXPECT_EQ(gone.Join().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  LetTheServerNotice();
  executor_.Resume();
  ASSERT_TRUE(WaitFor([this] { return NothingHeld(reader_); }));
  WaitingAllocate again(*memory_, reader_, RequestOf(1000, 7));
  ASSERT_TRUE(again.Join().ok());
  EXPECT_EQ(broker_.Holdings(reader_.session.id).leased_blocks, 1u);
  EXPECT_TRUE(Release(reader_, {again.response().blocks(0).block_id()}).ok());
  EXPECT_TRUE(NothingHeld(reader_));
}

// Undone before it is handled, when there is nothing to undo yet: what it gets then, out
// of the cache, nobody would ever give back.
TEST_F(DeferredAnswerTest, WhatIsGrantedToACallThatHasEndedIsKeptOnlyForARepetition) {
  constexpr uint64_t kNeverRepeated = uint64_t{1} << 63;
  constexpr uint64_t kCalls = 20;
  std::vector<uint64_t> cached;
  for (uint64_t i = 0; i < kCalls; ++i) cached.push_back(AllocateOne(reader_, 1000).block_id());
  ASSERT_TRUE(Release(reader_, cached).ok());
  RawHttp2Client client(directory_.File("broker.sock"));
  for (uint64_t i = 0; i < kCalls; ++i) {
    EXPECT_EQ(Release(reader_, UndoOf(kNeverRepeated + i)).error_code(),
              grpc::StatusCode::NOT_FOUND);
    // Over when it arrives.
    ASSERT_TRUE(client.StartCall({"/heapbroker.v1.MemoryBroker/Allocate",
                                  RequestOf(1000, kNeverRepeated + i).SerializeAsString(),
                                  reader_.token, "1n"}));
  }
  LetTheServerNotice();
  EXPECT_TRUE(WaitFor([this] { return NothingHeld(reader_); }));
}

TEST_F(DeferredAnswerTest, WhatTheDeviceMakesForARequestThatWasUndoneIsGivenBack) {
  executor_.HoldAllocations();
  WaitingAllocate undone(*memory_, reader_, RequestOf(1000, 7));
  ASSERT_TRUE(WaitFor([this] { return executor_.waiting_allocations() == 1; }));
  ASSERT_TRUE(Release(reader_, UndoOf(7)).ok());
  // The id is free again, for something else.
  WaitingAllocate another(*memory_, reader_, RequestOf(200'000, 7));
  ASSERT_TRUE(WaitFor([this] { return pending_.size() == 2; }));
  executor_.Resume();
  EXPECT_EQ(undone.Join().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_TRUE(another.Join().ok());
  EXPECT_EQ(broker_.Holdings(reader_.session.id).leased_blocks, 1u);
  EXPECT_TRUE(Release(reader_, UndoOf(7)).ok());
  EXPECT_TRUE(NothingHeld(reader_));
}

TEST_F(DeferredAnswerTest, UndoingEndsARequestThatWaits) {
  AllocateOne(writer_, MiB(60).count());
  WaitingAllocate waiting(*memory_, reader_, RequestOf(MiB(50).count(), 7));
  ASSERT_TRUE(WaitForWaitingRequests(1));
  ASSERT_TRUE(Release(reader_, UndoOf(7)).ok());
  EXPECT_EQ(waiting.Join().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitForWaitingRequests(0));
  EXPECT_TRUE(NothingHeld(reader_));
}

// Deadlines so short that they pass at every moment of a call's life, on either
// side. Each client gives back what it learns of; what is left over then was
// granted to nobody.
TEST_F(DeferredAnswerTest, NothingIsLostWhateverMomentACallIsCancelledAt) {
  constexpr int kThreads = 4;
  constexpr int kCallsEach = 400;
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  std::atomic<int> wrong{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto stub = v1::MemoryBroker::NewStub(NewChannel());
      std::minstd_rand random(i + 1);
      for (int n = 0; n < kCallsEach; ++n) {
        // Both served from the cache and made by the device's thread.
        v1::AllocateRequest request;
        request.add_blocks()->set_size(1000 << (random() % 3));
        v1::AllocateResponse response;
        CallContext context(reader_);
        context.WithDeadline(absl::Microseconds(random() % 1500));
        if (!stub->Allocate(context.get(), request, &response).ok()) continue;
        answered.fetch_add(1);
        v1::ReleaseRequest release;
        release.add_block_ids(response.blocks(0).block_id());
        v1::ReleaseResponse released;
        CallContext release_context(reader_);
        // An answer that came was never undone behind the client's back.
        if (!stub->Release(release_context.get(), release, &released).ok()) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(WaitFor([this] { return pending_.size() == 0; }));
  RecordProperty("answered", answered.load());
  // What was sent, and met a client that had just stopped waiting, stays with the
  // session until it ends; nothing else may.
  End(reader_);
  EXPECT_TRUE(WaitFor([this] { return broker_.Stats().pools[0].leased == Bytes(); }));
}

}  // namespace
}  // namespace heapbroker

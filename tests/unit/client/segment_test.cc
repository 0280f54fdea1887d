// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/segment.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {
namespace {

constexpr Checksum kChecksum{.high = 1, .low = 2};

class SegmentTest : public testing::Test {
 protected:
  std::shared_ptr<Client> Connect() {
    return Client::Connect({.runtime_dir = daemon_.runtime_dir()}).value();
  }
  SegmentOptions Weights() const { return {.name = "weights", .size = Bytes(101)}; }

  bool AwaitUsers(int count) {
    return WaitFor([&] { return daemon_.segment_users("weights") == count; });
  }

  MemfdBlockSource source_;
  FakeDaemon daemon_{source_};
  const std::shared_ptr<Client> client_ = Connect();
};

TEST_F(SegmentTest, TheFirstIsTheWriterAndTheNextFindsItSealed) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  EXPECT_TRUE(writer.is_writer());
  EXPECT_EQ(writer.size(), Bytes(101));
  ASSERT_EQ(writer.blocks().size(), 2u);
  EXPECT_EQ(writer.blocks()[0]->facts().size + writer.blocks()[1]->facts().size, Bytes(101));
  EXPECT_THAT(writer.blocks()[1]->fd(), IsOk());
  EXPECT_FALSE(writer.checksum().has_value());
  ASSERT_THAT(writer.Seal(kChecksum), IsOk());
  EXPECT_FALSE(writer.is_writer());

  ASSERT_OK_AND_ASSIGN(const Segment reader, Connect()->OpenSegment(Weights()));
  EXPECT_FALSE(reader.is_writer());
  EXPECT_EQ(reader.checksum(), kChecksum);
  EXPECT_EQ(daemon_.segment_users("weights"), 2);
}

TEST_F(SegmentTest, OnlyTheWriterSealsAndOnlyOnce) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  ASSERT_THAT(writer.Seal(kChecksum), IsOk());
  EXPECT_THAT(writer.Seal(kChecksum), StatusIs(absl::StatusCode::kFailedPrecondition, "weights"));
  ASSERT_OK_AND_ASSIGN(Segment reader, client_->OpenSegment(Weights()));
  EXPECT_THAT(reader.Seal(kChecksum), StatusIs(absl::StatusCode::kFailedPrecondition, ""));
  ASSERT_THAT(reader.Close(), IsOk());
  EXPECT_THAT(reader.Seal(kChecksum), StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_F(SegmentTest, DestructionDetachesOnce) {
  {
    ASSERT_OK_AND_ASSIGN(Segment segment, client_->OpenSegment(Weights()));
    ASSERT_THAT(segment.Seal(kChecksum), IsOk());
    Segment moved = std::move(segment);
    EXPECT_FALSE(segment.attached());
    EXPECT_THAT(segment.Close(), IsOk());
    EXPECT_EQ(daemon_.segment_users("weights"), 1);
  }
  EXPECT_EQ(daemon_.segment_users("weights"), 0);
}

TEST_F(SegmentTest, AReplyThatMakesNoSenseLeavesNothingAttached) {
  daemon_.ChangeOpenSegmentReplies(
      [](v1::OpenSegmentResponse& response) { response.mutable_blocks(1)->set_device_index(9); });
  EXPECT_THAT(client_->OpenSegment(Weights()),
              StatusIs(absl::StatusCode::kInternal, "makes no sense"));
  EXPECT_TRUE(AwaitUsers(0));
}

TEST_F(SegmentTest, OthersWaitForTheWriterWithoutADeadline) {
  ClientOptions options{.runtime_dir = daemon_.runtime_dir(),
                        .call_timeout = absl::Milliseconds(50)};
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> impatient, Client::Connect(options));
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  absl::StatusOr<Segment> reader = absl::UnknownError("not yet");
  std::thread waiter([&] { reader = impatient->OpenSegment(Weights()); });
  ASSERT_TRUE(WaitFor([&] { return daemon_.waiting_calls() == 1; }));
  // Longer than the call timeout: that must not end the wait.
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(WaitFor([&] { return absl::Now() - begin > absl::Milliseconds(150); }));
  EXPECT_EQ(daemon_.waiting_calls(), 1);
  ASSERT_THAT(writer.Seal(kChecksum), IsOk());
  waiter.join();
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ(reader->checksum(), kChecksum);
}

TEST_F(SegmentTest, AGivenTimeoutEndsTheWait) {
  ASSERT_OK_AND_ASSIGN(const Segment writer, client_->OpenSegment(Weights()));
  SegmentOptions options = Weights();
  options.timeout = absl::Milliseconds(50);
  EXPECT_THAT(Connect()->OpenSegment(options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "in time"));
}

TEST_F(SegmentTest, CancellationEndsTheWait) {
  ASSERT_OK_AND_ASSIGN(const Segment writer, client_->OpenSegment(Weights()));
  SegmentOptions options = Weights();
  options.cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] {
    EXPECT_TRUE(WaitFor([&] { return daemon_.waiting_calls() == 1; }));
    options.cancellation->Cancel();
  });
  EXPECT_THAT(Connect()->OpenSegment(options), StatusIs(absl::StatusCode::kCancelled, ""));
  canceller.join();
}

TEST_F(SegmentTest, CancellationBeforeTheCallEndsItAtOnce) {
  SegmentOptions options = Weights();
  options.cancellation = std::make_shared<Cancellation>();
  options.cancellation->Cancel();
  EXPECT_THAT(client_->OpenSegment(options),
              StatusIs(absl::StatusCode::kCancelled, "before it began"));
  EXPECT_EQ(daemon_.segment_users("weights"), 0);
}

TEST_F(SegmentTest, ADaemonThatEndsEndsTheWait) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  std::thread stopper([&] {
    EXPECT_TRUE(WaitFor([&] { return daemon_.waiting_calls() == 1; }));
    daemon_.Stop();
  });
  EXPECT_FALSE(Connect()->OpenSegment(Weights()).ok());
  stopper.join();
  EXPECT_THAT(writer.Seal(kChecksum),
              StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
}

// Attachments whose close fails end while the session goes on.
class FailedCloseTest : public SegmentTest {
 protected:
  // Calls that go later go in order: this one's end is the end of those before it.
  void AwaitLater() {
    Lease lease = client_->Allocate({.size = Bytes(1)}).value();
    const size_t before = daemon_.releases().size();
    lease.ReleaseLater();
    EXPECT_TRUE(WaitFor([&] { return daemon_.releases().size() > before; }));
  }
};

TEST_F(FailedCloseTest, AWriterThatWasDroppedWhileTheDaemonHungIsClosedLater) {
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> impatient,
                       Client::Connect({.runtime_dir = daemon_.runtime_dir(),
                                        .call_timeout = absl::Milliseconds(50)}));
  ASSERT_OK_AND_ASSIGN(Segment writer, impatient->OpenSegment(Weights()));
  daemon_.HoldCalls(true);
  writer = Segment();
  EXPECT_EQ(daemon_.segment_users("weights"), 1);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(AwaitUsers(0));
}

TEST_F(FailedCloseTest, OneThatDidNotReachTheDaemonIsTriedAgain) {
  for (const grpc::StatusCode code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN}) {
    SegmentOptions options = Weights();
    options.name = absl::StrCat("weights ", code);
    ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(options));
    daemon_.FailCallsWith(grpc::Status(code, "not now"));
    writer = Segment();
    EXPECT_EQ(daemon_.segment_users(options.name), 1);
    daemon_.FailCallsWith(grpc::Status::OK);
    EXPECT_TRUE(WaitFor([&] { return daemon_.segment_users(options.name) == 0; })) << code;
  }
}

TEST_F(FailedCloseTest, AfterUnavailableItGoesLater) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now"));
  EXPECT_THAT(writer.Close(), StatusIs(absl::StatusCode::kUnavailable, ""));
  EXPECT_FALSE(writer.attached());
  daemon_.FailCallsWith(grpc::Status::OK);
  EXPECT_TRUE(AwaitUsers(0));
}

TEST_F(FailedCloseTest, GoingLaterWaitsForNoAnswer) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  daemon_.HoldCalls(true);
  writer.CloseLater();
  EXPECT_FALSE(writer.attached());
  EXPECT_EQ(daemon_.segment_users("weights"), 1);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(AwaitUsers(0));
}

TEST_F(FailedCloseTest, OneThatArrivedWithoutAnAnswerTakesNoOtherAttachmentOfTheSession) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  ASSERT_THAT(writer.Seal(kChecksum), IsOk());
  ASSERT_OK_AND_ASSIGN(Segment reader, client_->OpenSegment(Weights()));
  daemon_.LoseCloseReplies(grpc::Status(grpc::StatusCode::INTERNAL, "lost"));
  reader = Segment();
  daemon_.LoseCloseReplies(grpc::Status::OK);
  AwaitLater();
  EXPECT_EQ(daemon_.segment_users("weights"), 1) << "the writer's";
  EXPECT_EQ(daemon_.closes(), 1);
  // With the last of them gone, there is nothing more that it could take.
  ASSERT_THAT(writer.Close(), IsOk());
  EXPECT_TRUE(WaitFor([&] { return daemon_.closes() == 3; }));
  EXPECT_EQ(daemon_.segment_users("weights"), 0);
}

TEST_F(FailedCloseTest, OneThatDidNotArriveEndsWithTheLastAttachmentOfTheSession) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  ASSERT_THAT(writer.Seal(kChecksum), IsOk());
  ASSERT_OK_AND_ASSIGN(Segment reader, client_->OpenSegment(Weights()));
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::INTERNAL, "not now"));
  reader = Segment();
  daemon_.FailCallsWith(grpc::Status::OK);
  AwaitLater();
  EXPECT_EQ(daemon_.segment_users("weights"), 2);
  ASSERT_THAT(writer.Close(), IsOk());
  EXPECT_TRUE(AwaitUsers(0));
}

TEST_F(FailedCloseTest, NobodyOpensASegmentWhileACloseOfItIsRepeated) {
  ASSERT_OK_AND_ASSIGN(Segment writer, client_->OpenSegment(Weights()));
  ASSERT_THAT(writer.Seal(kChecksum), IsOk());
  daemon_.HoldCalls(true);
  writer.CloseLater();
  ASSERT_TRUE(WaitFor([&] { return daemon_.held_calls() == 1; }));
  SegmentOptions options = Weights();
  options.timeout = absl::Milliseconds(50);
  EXPECT_THAT(client_->OpenSegment(options), StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(daemon_.held_calls(), 1);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(AwaitUsers(0));
  EXPECT_THAT(client_->OpenSegment(Weights()), IsOk());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/client.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/src/descriptor_import.h"
#include "common/base/mutex.h"
#include "common/posix/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process_facts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/client_fixture.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;

TEST_F(ClientTest, SaysWhoItIsAndLearnsTheDevices) {
  ClientOptions options = Options();
  options.observer = true;
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> client, Client::Connect(options));
  const std::vector<v1::SessionRequest> requests = daemon_.session_socket().requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].hello().name(), "test");
  EXPECT_EQ(requests[0].hello().protocol_major(), kProtocolMajor);
  EXPECT_TRUE(requests[0].hello().observer());
  EXPECT_EQ(client->session_id(), 7u);
  ASSERT_EQ(client->devices().size(), 1u);
  EXPECT_EQ(client->devices()[0].name, "no device");
}

TEST_F(ClientTest, CallsTakeFiveSecondsByDefault) {
  EXPECT_EQ(Connect()->call_timeout(), absl::Seconds(5));
}

TEST_F(ClientTest, IsCalledAsItsProgramByDefault) {
  ClientOptions options = Options();
  options.name = "";
  ASSERT_THAT(Client::Connect(options), IsOk());
  EXPECT_EQ(daemon_.session_socket().requests()[0].hello().name(), program_invocation_short_name);
}

TEST_F(ClientTest, RefusesABadNameBeforeConnecting) {
  ClientOptions options = Options();
  options.name = std::string(129, 'x');
  EXPECT_THAT(Client::Connect(options), StatusIs(absl::StatusCode::kInvalidArgument, "name"));
  options.name = "a\nb";
  EXPECT_THAT(Client::Connect(options), StatusIs(absl::StatusCode::kInvalidArgument, "name"));
  EXPECT_TRUE(daemon_.session_socket().requests().empty());
}

TEST_F(ClientTest, LeasesAndReturnsByDestruction) {
  const std::shared_ptr<Client> client = Connect();
  {
    ASSERT_OK_AND_ASSIGN(const Lease lease,
                         client->Allocate({.size = Bytes(1000), .alignment = Bytes(256)}));
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(lease.facts().size, Bytes(1000));
    EXPECT_EQ(daemon_.last_allocate().blocks(0).alignment(), 256u);
    EXPECT_EQ(daemon_.leased_blocks(), 1u);
  }
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(ClientTest, AMovedLeaseIsReturnedOnce) {
  const std::shared_ptr<Client> client = Connect();
  {
    ASSERT_OK_AND_ASSIGN(Lease first, client->Allocate({.size = Bytes(1)}));
    ASSERT_OK_AND_ASSIGN(Lease second, client->Allocate({.size = Bytes(2)}));
    second = std::move(first);
    EXPECT_EQ(daemon_.leased_blocks(), 1u);
    EXPECT_FALSE(first.held());
    EXPECT_EQ(first.facts().block_id, 0u);
    EXPECT_THAT(first.fd(), StatusIs(absl::StatusCode::kFailedPrecondition, "holds nothing"));
    EXPECT_THAT(first.Release(), IsOk());
    EXPECT_EQ(second.facts().size, Bytes(1));
  }
  EXPECT_EQ(daemon_.releases().size(), 2u);
}

TEST_F(ClientTest, ALeaseOutlivesItsClient) {
  std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  client.reset();
  EXPECT_THAT(lease.fd(), IsOk());
  EXPECT_THAT(lease.Release(), IsOk());
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 0; }));
}

TEST_F(ClientTest, TheSessionEndsWithItsLastUser) {
  std::shared_ptr<Client> client = Connect();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 1; }));
  client.reset();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 0; }));
}

TEST_F(ClientTest, ReleasingTwiceIsNotFoundAndLeavesNothingHeld) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::NOT_FOUND, "no such block"));
  EXPECT_THAT(lease.Release(), StatusIs(absl::StatusCode::kNotFound, "no such block"));
  EXPECT_FALSE(lease.held());
}

TEST_F(ClientTest, ALeaseThatCouldNotBeReleasedIsStillHeld) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, ""));
  EXPECT_THAT(lease.Release(), StatusIs(absl::StatusCode::kDeadlineExceeded, "in time"));
  EXPECT_TRUE(lease.held());
  daemon_.FailCallsWith(grpc::Status::OK);
  EXPECT_THAT(lease.Release(), IsOk());
}

TEST_F(ClientTest, ManyLeasesAreReleasedInFewCalls) {
  const std::shared_ptr<Client> client = Connect();
  std::vector<AllocationRequest> requests(6, {.size = Bytes(10)});
  ASSERT_OK_AND_ASSIGN(std::vector<Lease> leases, client->AllocateAll(requests));
  EXPECT_EQ(daemon_.leased_blocks(), 6u);
  EXPECT_THAT(ReleaseAll(std::move(leases)), IsOk());
  // The daemon said that it takes four in one call.
  EXPECT_THAT(daemon_.releases(), ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(5, 6)));
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(ClientTest, OneUnknownLeaseDoesNotKeepTheOthersFromBeingReleased) {
  const std::shared_ptr<Client> client = Connect();
  const std::vector<AllocationRequest> requests(3, {.size = Bytes(10)});
  ASSERT_OK_AND_ASSIGN(std::vector<Lease> leases, client->AllocateAll(requests));
  daemon_.ForgetBlock(leases[1].facts().block_id);
  EXPECT_THAT(ReleaseAll(std::move(leases)), StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

// Leases whose release fails go back while the session goes on.
class FailedReleaseTest : public ClientTest {
 protected:
  bool NothingIsLeft() {
    return WaitFor([&] { return daemon_.leased_blocks() == 0; });
  }
  std::shared_ptr<Client> Impatient() {
    ClientOptions options = Options();
    options.call_timeout = absl::Milliseconds(100);
    return Client::Connect(options).value();
  }
};

TEST_F(FailedReleaseTest, ManyThatWereCancelledBeforehandGoLater) {
  const std::shared_ptr<Client> client = Connect();
  const std::vector<AllocationRequest> requests(6, {.size = Bytes(10)});
  ASSERT_OK_AND_ASSIGN(std::vector<Lease> leases, client->AllocateAll(requests));
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  EXPECT_THAT(ReleaseAll(std::move(leases), {.cancellation = cancellation}),
              StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(FailedReleaseTest, ManyWhoseTimeIsOverGoLaterThoughSomeAreGoneAlready) {
  const std::shared_ptr<Client> client = Connect();
  const std::vector<AllocationRequest> requests(3, {.size = Bytes(10)});
  ASSERT_OK_AND_ASSIGN(std::vector<Lease> leases, client->AllocateAll(requests));
  daemon_.ForgetBlock(leases[1].facts().block_id);
  daemon_.HoldCalls(true);
  EXPECT_THAT(ReleaseAll(std::move(leases), {.timeout = absl::Milliseconds(50)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  daemon_.HoldCalls(false);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(FailedReleaseTest, ManyOfWhichOneIsGoneTakeNoLongerThanTheirTime) {
  // Whose calls would otherwise wait for ever.
  ClientOptions options = Options();
  options.call_timeout = absl::InfiniteDuration();
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> patient, Client::Connect(options));
  // Two calls: the first finds one that is gone, and the second finds nobody.
  const std::vector<AllocationRequest> requests(6, {.size = Bytes(10)});
  ASSERT_OK_AND_ASSIGN(std::vector<Lease> leases, patient->AllocateAll(requests));
  daemon_.ForgetBlock(leases[1].facts().block_id);
  daemon_.HoldCallsAfter(1);
  EXPECT_THAT(ReleaseAll(std::move(leases), {.timeout = absl::Milliseconds(100)}),
              StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(daemon_.leased_blocks(), 5u);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(FailedReleaseTest, OneThatWasDroppedWhileTheDaemonHungGoesLater) {
  const std::shared_ptr<Client> client = Impatient();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.HoldCalls(true);
  lease = Lease();
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(FailedReleaseTest, OneThatDidNotReachTheDaemonIsTriedAgain) {
  const std::shared_ptr<Client> client = Connect();
  for (const grpc::StatusCode code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN}) {
    ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
    daemon_.FailCallsWith(grpc::Status(code, "not now"));
    lease = Lease();
    // Of the destructor, and at least one later.
    EXPECT_TRUE(WaitFor([&] { return daemon_.failed_calls() >= 2; }));
    EXPECT_EQ(daemon_.leased_blocks(), 1u);
    daemon_.FailCallsWith(grpc::Status::OK);
    EXPECT_TRUE(NothingIsLeft()) << code;
  }
}

TEST_F(FailedReleaseTest, GoingLaterWaitsForNoAnswer) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.HoldCalls(true);
  lease.ReleaseLater();
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  daemon_.HoldCalls(false);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(ClientTest, ADescriptorIsFetchedOnceAndHasCloseOnExec) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  ASSERT_OK_AND_ASSIGN(const int fd, lease.fd());
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(lease.fd().value(), fd);
  EXPECT_EQ(daemon_.session_socket().requests().size(), 2u);
}

TEST_F(ClientTest, ThreadsThatFetchAtOnceGetTheirOwnBlocks) {
  const std::shared_ptr<Client> client = Connect();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const Bytes size(static_cast<uint64_t>(1000 * i + round + 1));
        ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = size}));
        ASSERT_OK_AND_ASSIGN(const int fd, lease.fd());
        EXPECT_EQ(lseek(fd, 0, SEEK_END), static_cast<off_t>(size.count()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(daemon_.leased_blocks(), 0u);
}

TEST_F(ClientTest, AFetchRefusedByTheDaemonKeepsItsCode) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.session_socket().AnswerWith(
      [](const v1::SessionRequest&) { return Refuse(5, "no such block"); });
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kNotFound, "no such block"));
  daemon_.session_socket().AnswerWith(
      [](const v1::SessionRequest&) { return Refuse(1'000'000, "what"); });
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kUnknown, "what"));
}

TEST_F(ClientTest, AnAnswerThatComesTooLateIsNotTakenForTheNextOne) {
  ClientOptions options = Options();
  options.call_timeout = absl::Milliseconds(100);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> client, Client::Connect(options));
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  Mutex mutex;
  CondVar changed;
  bool go_on = false;
  daemon_.session_socket().AnswerWith([&](const v1::SessionRequest& request) {
    MutexLock lock(mutex);
    while (!go_on) changed.Wait(mutex);
    return Refuse(5, absl::StrCat("late answer ", request.fetch().block_ids(0)));
  });
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kDeadlineExceeded, "did not answer"));
  ASSERT_OK_AND_ASSIGN(const Lease next, client->Allocate({.size = Bytes(1)}));
  {
    MutexLock lock(mutex);
    go_on = true;
  }
  changed.NotifyAll();
  EXPECT_THAT(next.fd(), StatusIs(absl::StatusCode::kNotFound,
                                  absl::StrCat("late answer ", next.facts().block_id)));
}

TEST_F(ClientTest, AtTheDescriptorLimitAFetchFailsAndALaterOneWorks) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  // The fake must neither need a descriptor itself nor free one meanwhile.
  const UniqueFd prepared(open("/dev/null", O_RDONLY | O_CLOEXEC));
  daemon_.session_socket().AnswerWith([&](const v1::SessionRequest& request) {
    SessionAnswer answer;
    answer.reply.mutable_fetched()->add_block_ids(request.fetch().block_ids(0));
    answer.borrowed_fds = {prepared.get()};
    return answer;
  });
  {
    const DescriptorLimit limit;
    EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kResourceExhausted, "RLIMIT_NOFILE"));
  }
  EXPECT_THAT(lease.fd(), IsOk());
}

TEST_F(ClientTest, AFetchedMessageWithoutADescriptorIsAnError) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.session_socket().AnswerWith([](const v1::SessionRequest& request) {
    SessionAnswer answer;
    answer.reply.mutable_fetched()->add_block_ids(request.fetch().block_ids(0));
    return answer;
  });
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kInternal, "0 descriptors for 1 blocks"));
  daemon_.session_socket().AnswerWith([](const v1::SessionRequest&) {
    SessionAnswer answer;
    answer.reply.mutable_fetched()->add_block_ids(999);
    answer.fds.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return answer;
  });
  const size_t before = OpenDescriptorCount(getpid()).value();
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kInternal, "something else"));
  // The fake closes its own copy in its own time.
  EXPECT_TRUE(WaitFor([&] { return OpenDescriptorCount(getpid()).value() == before; }));
}

TEST_F(ClientTest, AFailedImportDoesNotCloseWhatWasFetchedUnderItsNumber) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  ASSERT_OK_AND_ASSIGN(const int original, lease.fd());
  // As two attachments to one segment do: the same open file, fetched twice.
  ASSERT_OK_AND_ASSIGN(const Lease again, client->Allocate({.size = Bytes(1)}));
  daemon_.session_socket().AnswerWith([&](const v1::SessionRequest& request) {
    SessionAnswer answer;
    answer.reply.mutable_fetched()->add_block_ids(request.fetch().block_ids(0));
    answer.borrowed_fds = {original};
    return answer;
  });
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  std::atomic<int> fetched = -1;
  std::thread fetcher;
  EXPECT_FALSE(importer
                   .Import(original, CallLimits(),
                           [&](int duplicate) {
                             close(duplicate);
                             fetcher = std::thread([&] { fetched = again.fd().value_or(-1); });
                             // Were it not to wait, this would be time enough.
                             WaitFor([&] { return fetched >= 0; }, absl::Milliseconds(200));
                             return absl::InternalError("the driver refused");
                           })
                   .ok());
  fetcher.join();
  EXPECT_GE(fcntl(fetched, F_GETFD), 0);
}

TEST_F(ClientTest, WhatAReplyWithTooManyBlocksGrantsIsReleased) {
  const std::shared_ptr<Client> client = Connect();
  daemon_.ChangeAllocateReplies([&](v1::AllocateResponse& response) {
    v1::Block& unknown = *response.add_blocks();
    unknown = response.blocks(0);
    unknown.set_block_id(1000);
  });
  EXPECT_THAT(client->AllocateAll({{.size = Bytes(1)}, {.size = Bytes(2)}}),
              StatusIs(absl::StatusCode::kInternal, "granted 3 blocks for 2 requests"));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(ClientTest, WhatAReplyThatMakesNoSenseGrantsIsReleased) {
  const std::shared_ptr<Client> client = Connect();
  daemon_.ChangeAllocateReplies([](v1::AllocateResponse& response) {
    response.mutable_blocks(1)->set_handle_type(v1::HANDLE_TYPE_UNSPECIFIED);
  });
  EXPECT_THAT(client->AllocateAll({{.size = Bytes(1)}, {.size = Bytes(2)}, {.size = Bytes(3)}}),
              StatusIs(absl::StatusCode::kInternal, "handle type 0"));
  EXPECT_TRUE(WaitFor([&] { return daemon_.leased_blocks() == 0; }));
}

TEST_F(ClientTest, CallsOfALostDaemonAreUnavailable) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.Stop();
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
  EXPECT_THAT(client->OpenSegment({.name = "w", .size = Bytes(2)}),
              StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
  EXPECT_THAT(lease.Release(), StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
  EXPECT_FALSE(lease.held());
}

TEST_F(ClientTest, AFetchThatTheDaemonHangsUpOnIsUnavailable) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.session_socket().AnswerWith([](const v1::SessionRequest&) {
    SessionAnswer answer;
    answer.then = SessionAnswer::Then::kHangUp;
    return answer;
  });
  EXPECT_THAT(lease.fd(), StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
}

TEST_F(ClientTest, ATokenThatTheDaemonDoesNotKnowMeansThatTheSessionEnded) {
  const std::shared_ptr<Client> client = Connect();
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "unknown token"));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
}

TEST_F(ClientTest, RefusalsKeepTheirCodeAndText) {
  const std::shared_ptr<Client> client = Connect();
  daemon_.FailCallsWith(
      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "heap 0: 5 of 6 bytes are in use"));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(absl::StatusCode::kResourceExhausted, "heap 0: 5 of 6 bytes are in use"));
}

TEST_F(ClientTest, AForkedChildIsToldSoAndReturnsNothingOfItsParents) {
  const std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool allocate = absl::IsFailedPrecondition(client->Allocate({.size = Bytes(1)}).status());
    const bool fetch = absl::IsFailedPrecondition(lease.fd().status());
    const bool open =
        absl::IsFailedPrecondition(client->OpenSegment({.name = "w", .size = Bytes(1)}).status());
    const absl::Status released = lease.Release();
    const bool release = absl::IsFailedPrecondition(released) &&
                         absl::StrContains(released.message(), "fork before anything connects");
    { Lease dropped = std::move(lease); }
    _exit(allocate && fetch && open && release ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_THAT(lease.fd(), IsOk());
}

TEST_F(ClientTest, AForkedChildCanDropTheWholeConnection) {
  std::shared_ptr<Client> client = Connect();
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    { Lease dropped = std::move(lease); }
    client.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
}

}  // namespace
}  // namespace heapbroker

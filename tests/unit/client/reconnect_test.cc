// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client whose daemon is lost: what is told, what its old leases do, and how it
// connects again.
#include "heapbroker/reconnect.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "heapbroker/memory_watch.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/process_facts.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/client/reconnect_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Checksum kChecksum{.high = 1, .low = 2};

class ReconnectTest : public ReconnectFixture {};

TEST_F(ReconnectTest, TellsWhatWasLostAtOnceAndWithoutAnyCall) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  ASSERT_OK_AND_ASSIGN(const Lease kept, client->Allocate({.size = Bytes(10)}));
  ASSERT_OK_AND_ASSIGN(Lease released, client->Allocate({.size = Bytes(20)}));
  ASSERT_THAT(released.Release(), IsOk());
  ASSERT_OK_AND_ASSIGN(Segment sealed, client->OpenSegment({.name = "sealed", .size = Bytes(30)}));
  ASSERT_THAT(sealed.Seal(kChecksum), IsOk());
  ASSERT_OK_AND_ASSIGN(const Segment open,
                       client->OpenSegment({.name = "open", .size = Bytes(40)}));
  ASSERT_OK_AND_ASSIGN(Segment closed, client->OpenSegment({.name = "closed", .size = Bytes(50)}));
  ASSERT_THAT(closed.Close(), IsOk());
  EXPECT_FALSE(kept.lost());

  daemon_.Stop();
  ASSERT_TRUE(AwaitLost());
  const LostSession lost = this->lost()[0];
  EXPECT_EQ(lost.session_id, 7u);
  EXPECT_EQ(lost.connection_number, kept.block()->connection_number());
  ASSERT_EQ(lost.leases.size(), 1u);
  EXPECT_EQ(lost.leases[0].block_id, kept.facts().block_id);
  EXPECT_EQ(lost.leases[0].size, Bytes(10));
  ASSERT_EQ(lost.segments.size(), 2u);
  EXPECT_EQ(lost.segments[0].name, "sealed");
  EXPECT_EQ(lost.segments[0].segment_id, sealed.id());
  EXPECT_FALSE(lost.segments[0].writer);
  EXPECT_EQ(lost.segments[1].name, "open");
  EXPECT_TRUE(lost.segments[1].writer);
  EXPECT_EQ(lost.segments[1].size, Bytes(40));
  EXPECT_TRUE(kept.lost());
  EXPECT_FALSE(released.lost());
  EXPECT_TRUE(open.lost());
  EXPECT_FALSE(closed.lost());
}

TEST_F(ReconnectTest, WhereThereCouldBeNoThreadTheNextCallStartsIt) {
  const std::shared_ptr<Client> client = Connect(Options());
  daemon_.Stop();
  {
    const NoMoreThreads no_more;
    EXPECT_THAT(client->Allocate({.size = Bytes(1)}), StatusIs(StatusCode::kUnavailable, ""));
    EXPECT_THAT(client->Allocate({.size = Bytes(1)}), StatusIs(StatusCode::kUnavailable, ""));
  }
  EXPECT_THAT(pace_->pauses(), IsEmpty());
  daemon_.Restart();
  pace_->Go();
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), StatusIs(StatusCode::kUnavailable, ""));
  EXPECT_THAT(client->AwaitSession(), IsOk());
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
}

TEST_F(ReconnectTest, WhoeverAwaitsASessionStartsTheThreadOnceThereCanBeOne) {
  const std::shared_ptr<Client> client = Connect(Options());
  daemon_.Restart();
  pace_->Go();
  std::optional<NoMoreThreads> no_more(std::in_place);
  EXPECT_THAT(client->AwaitSession({.timeout = absl::Milliseconds(150)}),
              StatusIs(StatusCode::kDeadlineExceeded, ""));
  no_more.reset();
  EXPECT_THAT(client->AwaitSession(), IsOk());
}

TEST_F(ReconnectTest, CallsAreUnavailableUntilThereIsASessionAgain) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  daemon_.Stop();
  ASSERT_TRUE(AwaitPauses(1));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(StatusCode::kUnavailable, "the library is connecting again"));
  EXPECT_THAT(client->OpenSegment({.name = "w", .size = Bytes(2)}),
              StatusIs(StatusCode::kUnavailable, "imported memory stays valid"));
  EXPECT_THAT(client->UndoAllocate(1), StatusIs(StatusCode::kUnavailable, ""));
  pace_->Go();
  ASSERT_TRUE(AwaitPauses(2));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(StatusCode::kUnavailable, "has failed 1 time: NOT_FOUND"));

  daemon_.Restart();
  pace_->Go();
  ASSERT_TRUE(AwaitReconnected());
  EXPECT_EQ(reconnected()[0].session_id, 8u);
  EXPECT_TRUE(reconnected()[0].same_devices);
  EXPECT_EQ(client->session_id(), 8u);
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  EXPECT_THAT(lease.fd(), IsOk());
  EXPECT_FALSE(lease.lost());
}

TEST_F(ReconnectTest, WhatBelongsToTheOldSessionNeverReachesTheNewDaemon) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  ASSERT_OK_AND_ASSIGN(Lease fetched, client->Allocate({.size = Bytes(1)}));
  ASSERT_OK_AND_ASSIGN(const int fd, fetched.fd());
  ASSERT_OK_AND_ASSIGN(Lease unfetched, client->Allocate({.size = Bytes(1)}));
  auto dropped = std::make_unique<Lease>(client->Allocate({.size = Bytes(1)}).value());
  ASSERT_OK_AND_ASSIGN(Segment segment, client->OpenSegment({.name = "w", .size = Bytes(2)}));
  daemon_.Restart();
  pace_->Go();
  ASSERT_TRUE(AwaitReconnected());
  // The same block ids again, in other hands.
  ASSERT_OK_AND_ASSIGN(std::vector<Lease> leases,
                       client->AllocateAll(std::vector<AllocationRequest>(4, {.size = Bytes(1)})));

  EXPECT_EQ(fetched.fd().value_or(-1), fd);
  EXPECT_THAT(unfetched.fd(), StatusIs(StatusCode::kUnavailable, "session has ended"));
  EXPECT_THAT(fetched.Release(), StatusIs(StatusCode::kUnavailable, "session has ended"));
  EXPECT_FALSE(fetched.held());
  dropped.reset();
  std::vector<Lease> both;
  both.push_back(std::move(unfetched));
  both.push_back(std::move(leases.back()));
  leases.pop_back();
  EXPECT_THAT(ReleaseAll(std::move(both)), StatusIs(StatusCode::kUnavailable, ""));
  EXPECT_THAT(segment.Seal(kChecksum), StatusIs(StatusCode::kUnavailable, "session has ended"));
  EXPECT_THAT(segment.Close(), StatusIs(StatusCode::kUnavailable, "session has ended"));
  EXPECT_EQ(daemon_.releases().size(), 1u) << "the one of the new session";
  EXPECT_EQ(daemon_.leased_blocks(), 3u);
}

TEST_F(ReconnectTest, WithoutHandlersTheFirstCallNoticesTheLoss) {
  const std::shared_ptr<Client> client = Connect(Options());
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.Restart();
  EXPECT_THAT(lease.Release(), StatusIs(StatusCode::kUnavailable, "session has ended"));
  EXPECT_TRUE(AwaitPauses(1));
  pace_->Go();
  EXPECT_THAT(client->AwaitSession(), IsOk());
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
  // And again, with another thread.
  daemon_.Restart();
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), StatusIs(StatusCode::kUnavailable, ""));
  pace_->Go();
  EXPECT_THAT(client->AwaitSession(), IsOk());
  EXPECT_EQ(client->session_id(), 9u);
}

TEST_F(ReconnectTest, ASessionThatTheDaemonEndsAloneIsLostToo) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  pace_->Go();
  daemon_.session_socket().HangUpAll();
  EXPECT_TRUE(AwaitReconnected());
  EXPECT_EQ(lost().size(), 1u);
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
}

TEST_F(ReconnectTest, ATokenThatTheDaemonDoesNotKnowLosesTheSession) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "unknown token"));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(StatusCode::kUnavailable, "session has ended"));
  EXPECT_TRUE(AwaitLost());
  daemon_.FailCallsWith(grpc::Status::OK);
  pace_->Go();
  EXPECT_TRUE(AwaitReconnected());
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 1; }));
}

TEST_F(ReconnectTest, ARefusalThatIsUnavailableLosesNothing) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the device is lost"));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(StatusCode::kUnavailable, "the device is lost"));
  daemon_.FailCallsWith(grpc::Status::OK);
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(ReconnectTest, PausesDoubleUpToTheirLimitAndLeaveRoomForChance) {
  ClientOptions options = NotingOptions();
  options.reconnect = {.initial_delay = absl::Milliseconds(100),
                       .max_delay = absl::Milliseconds(300),
                       .jitter = 0.5};
  const std::shared_ptr<Client> client = Connect(options);
  daemon_.Stop();
  ASSERT_TRUE(AwaitPauses(1));
  pace_->SetChance(0.5);
  for (size_t pauses = 2; pauses <= 4; ++pauses) {
    pace_->Go();
    ASSERT_TRUE(AwaitPauses(pauses));
  }
  EXPECT_THAT(pace_->pauses(), ElementsAre(absl::Milliseconds(100), absl::Milliseconds(150),
                                           absl::Milliseconds(225), absl::Milliseconds(225)));
}

TEST_F(ReconnectTest, OnlyASessionThatLastedPutsThePausesBack) {
  ClientOptions options = NotingOptions();
  options.reconnect = {.initial_delay = absl::Milliseconds(100), .max_delay = absl::Seconds(60)};
  const std::shared_ptr<Client> client = Connect(options);
  for (size_t session = 1; session <= 2; ++session) {
    daemon_.session_socket().HangUpAll();
    pace_->Go();
    ASSERT_TRUE(AwaitReconnected(session));
  }
  pace_->Advance(absl::Seconds(60));
  daemon_.session_socket().HangUpAll();
  pace_->Go();
  ASSERT_TRUE(AwaitReconnected(3));
  EXPECT_THAT(pace_->pauses(), ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200),
                                           absl::Milliseconds(100)));
}

TEST_F(ReconnectTest, SwitchedOffALossIsTheEnd) {
  ClientOptions options = NotingOptions();
  options.reconnect.enabled = false;
  const std::shared_ptr<Client> client = Connect(options);
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.Restart();
  ASSERT_TRUE(AwaitLost());
  EXPECT_EQ(lost()[0].leases.size(), 1u);
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(StatusCode::kUnavailable, "connect again for one"));
  EXPECT_THAT(client->AwaitSession(), StatusIs(StatusCode::kUnavailable, "connect again for one"));
  EXPECT_THAT(pace_->pauses(), IsEmpty());
  EXPECT_TRUE(daemon_.session_socket().requests().empty());
}

TEST_F(ReconnectTest, SaysThatTheDevicesAreOthers) {
  const std::shared_ptr<Client> client = Connect(NotingOptions());
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1)}));
  daemon_.Restart(2);
  pace_->Go();
  ASSERT_TRUE(AwaitReconnected());
  EXPECT_FALSE(reconnected()[0].same_devices);
  EXPECT_EQ(client->devices().size(), 2u);
  EXPECT_EQ(lease.block()->device().name, "no device") << "of its own session";
}

TEST_F(ReconnectTest, AHandlerMayUseTheClientAndDropIt) {
  struct Shared {
    Mutex mutex;
    std::shared_ptr<Client> client ABSL_GUARDED_BY(mutex);
    absl::Status told ABSL_GUARDED_BY(mutex);
  };
  const auto shared = std::make_shared<Shared>();
  ClientOptions options = Options();
  options.handlers.on_lost = [shared](const LostSession&) {
    std::shared_ptr<Client> ending;
    {
      MutexLock lock(shared->mutex);
      ending = std::move(shared->client);
    }
    const absl::Status told = ending->Allocate({.size = Bytes(1)}).status();
    ending.reset();
    MutexLock lock(shared->mutex);
    shared->told = told;
  };
  {
    std::shared_ptr<Client> client = Connect(options);
    options.handlers.on_lost = nullptr;
    MutexLock lock(shared->mutex);
    shared->client = std::move(client);
  }
  daemon_.session_socket().HangUpAll();
  EXPECT_TRUE(WaitFor([&] {
    MutexLock lock(shared->mutex);
    return absl::IsUnavailable(shared->told);
  }));
  // The handlers end with the thread that called them.
  EXPECT_TRUE(WaitFor([&] { return shared.use_count() == 1; }));
  EXPECT_EQ(daemon_.session_socket().connections(), 0u);
}

TEST_F(ReconnectTest, ItsEndEndsTheWaitForTheNextAttempt) {
  std::shared_ptr<Client> client = Connect(NotingOptions());
  daemon_.Stop();
  ASSERT_TRUE(AwaitPauses(1));
  client.reset();
  EXPECT_THAT(reconnected(), IsEmpty());
}

TEST_F(ReconnectTest, ItsEndEndsAnAttemptThatTheDaemonDoesNotAnswer) {
  ClientOptions options = NotingOptions();
  options.call_timeout = absl::InfiniteDuration();
  std::shared_ptr<Client> client = Connect(options);
  daemon_.session_socket().AnswerWith([](const v1::SessionRequest&) {
    SessionAnswer answer;
    answer.then = SessionAnswer::Then::kIgnore;
    return answer;
  });
  pace_->Go();
  daemon_.session_socket().HangUpAll();
  ASSERT_TRUE(WaitFor([&] { return daemon_.session_socket().requests().size() == 2; }));
  client.reset();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 0; }));
}

TEST_F(ReconnectTest, ALeaseThatOutlivesItsClientConnectsNobodyAgain) {
  std::shared_ptr<Client> client = Connect(NotingOptions());
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  client.reset();
  EXPECT_THAT(lease.fd(), IsOk());
  daemon_.Stop();
  EXPECT_THAT(lease.Release(), StatusIs(StatusCode::kUnavailable, ""));
  EXPECT_THAT(pace_->pauses(), IsEmpty());
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(ReconnectTest, WaitingForASessionEndsWithItsTimeOrByCancellation) {
  const std::shared_ptr<Client> client = Connect(Options());
  EXPECT_THAT(client->AwaitSession({.timeout = absl::ZeroDuration()}), IsOk());
  daemon_.Stop();
  EXPECT_THAT(client->AwaitSession({.timeout = absl::Milliseconds(20)}),
              StatusIs(StatusCode::kDeadlineExceeded, "no session within 20ms"));
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] { cancellation->Cancel(); });
  EXPECT_THAT(
      client->AwaitSession({.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
      StatusIs(StatusCode::kCancelled, ""));
  canceller.join();
}

TEST_F(ReconnectTest, OnlyTheDirectoryOfTheFirstDaemonIsLookedInto) {
  // A relative name, and another working directory later.
  const std::string dir = daemon_.runtime_dir();
  const std::string before = std::filesystem::current_path();
  ASSERT_EQ(chdir(dir.c_str()), 0);
  ClientOptions options = NotingOptions();
  options.runtime_dir = ".";
  const std::shared_ptr<Client> client = Connect(options);
  ASSERT_EQ(chdir(before.c_str()), 0);
  // The directory that the environment names is nobody's business.
  MemfdBlockSource other_source;
  FakeDaemon other(other_source);
  setenv("HEAPBROKER_RUNTIME_DIR", other.runtime_dir().c_str(), 1);
  daemon_.Stop();
  pace_->Go();
  ASSERT_TRUE(AwaitPauses(2));
  daemon_.Restart();
  pace_->Go();
  EXPECT_TRUE(AwaitReconnected());
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
  EXPECT_TRUE(other.session_socket().requests().empty());
  unsetenv("HEAPBROKER_RUNTIME_DIR");
}

TEST_F(ReconnectTest, OptionsThatMakeNoSenseAreNamed) {
  ClientOptions options = Options();
  options.reconnect.initial_delay = absl::ZeroDuration();
  EXPECT_THAT(Client::Connect(options), StatusIs(StatusCode::kInvalidArgument, "initial_delay"));
  options.reconnect = {.initial_delay = absl::Seconds(2), .max_delay = absl::Seconds(1)};
  EXPECT_THAT(Client::Connect(options), StatusIs(StatusCode::kInvalidArgument, "max_delay"));
  options.reconnect = {.jitter = 1.5};
  EXPECT_THAT(Client::Connect(options), StatusIs(StatusCode::kInvalidArgument, "jitter"));
  EXPECT_TRUE(daemon_.session_socket().requests().empty());
}

// Without the pace of a test: time passes, and chance is the kernel's.
TEST_F(ReconnectTest, ComesBackByItself) {
  ClientOptions options = NotingOptions();
  options.reconnect = {.initial_delay = absl::Milliseconds(1), .max_delay = absl::Milliseconds(8)};
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> client, Client::Connect(options));
  daemon_.Stop();
  ASSERT_TRUE(AwaitLost());
  daemon_.Restart();
  EXPECT_TRUE(AwaitReconnected());
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}), IsOk());
}

TEST_F(ReconnectTest, AForkedChildOfAClientWithAThreadIsToldSoAndMayDropIt) {
  std::shared_ptr<Client> client = Connect(NotingOptions());
  ASSERT_OK_AND_ASSIGN(Lease lease, client->Allocate({.size = Bytes(1)}));
  ASSERT_OK_AND_ASSIGN(const int fd, lease.fd());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused = absl::IsFailedPrecondition(client->Allocate({}).status()) &&
                         absl::IsFailedPrecondition(client->UndoAllocate(1)) &&
                         absl::IsFailedPrecondition(client->AwaitSession()) &&
                         absl::IsFailedPrecondition(client->Watch({}).status());
    const bool nothing = client->devices().empty() && client->session_id() == 0 && !lease.lost();
    const bool has_descriptor = lease.fd().value_or(-1) == fd;
    client.reset();
    { Lease dropped = std::move(lease); }
    // It would hang in the first call.
    const bool no_other = absl::IsFailedPrecondition(Client::Connect(Options()).status());
    _exit(refused && nothing && has_descriptor && no_other ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(daemon_.leased_blocks(), 1u);
  EXPECT_THAT(lost(), IsEmpty());
  EXPECT_THAT(lease.Release(), IsOk());
}

TEST_F(ReconnectTest, AForkedChildsCopyOfTheSocketDoesNotKeepASessionThatItsParentEnds) {
  std::shared_ptr<Client> client = Connect(Options());
  ASSERT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 1; }));
  int go_on[2];
  ASSERT_EQ(pipe2(go_on, O_CLOEXEC), 0);
  const UniqueFd reader(go_on[0]);
  UniqueFd writer(go_on[1]);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    writer.Reset();
    char byte;
    (void)!read(reader.get(), &byte, 1);  // Until the parent closes the other end.
    _exit(0);
  }
  client.reset();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 0; }));
  writer.Reset();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Every call ends with its time and can be cancelled, whatever it waits for.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

// A session with one lease and one segment, for calls that the daemon does not answer.
class CallLimitsTest : public testing::Test {
 protected:
  SessionAnswer Ignore() {
    SessionAnswer answer;
    answer.then = SessionAnswer::Then::kIgnore;
    return answer;
  }
  void HoldEverything() {
    daemon_.HoldCalls(true);
    daemon_.session_socket().AnswerWith([this](const v1::SessionRequest&) { return Ignore(); });
  }

  // Calls by name, each with these options and for ever without.
  struct NamedCall {
    std::string name;
    std::function<absl::Status(const CallOptions&)> call;
  };
  std::vector<NamedCall> Calls() {
    return {
        {"Connect",
         [this](const CallOptions& options) {
           return Client::Connect({.runtime_dir = daemon_.runtime_dir()}, options).status();
         }},
        {"Allocate",
         [this](const CallOptions& options) {
           return client_
               ->Allocate({.size = Bytes(1)}, {.timeout = options.timeout,
                                               .cancellation = options.cancellation,
                                               .request_id = 1})
               .status();
         }},
        {"UndoAllocate",
         [this](const CallOptions& options) { return client_->UndoAllocate(1, 0, options); }},
        {"OpenSegment",
         [this](const CallOptions& options) {
           return client_
               ->OpenSegment({.name = "other",
                              .size = Bytes(2),
                              .timeout = *options.timeout,
                              .cancellation = options.cancellation})
               .status();
         }},
        {"Lease::fd", [this](const CallOptions& options) { return lease_.fd(options).status(); }},
        {"Seal", [this](const CallOptions& options) { return segment_.Seal(Checksum{}, options); }},
        {"Close", [this](const CallOptions& options) { return segment_.Close(options); }},
        {"Release", [this](const CallOptions& options) { return lease_.Release(options); }},
    };
  }

  MemfdBlockSource source_;
  FakeDaemon daemon_{source_};
  const std::shared_ptr<Client> client_ =
      Client::Connect({.runtime_dir = daemon_.runtime_dir(), .call_timeout = absl::Seconds(20)})
          .value();
  Lease lease_ = client_->Allocate({.size = Bytes(1)}).value();
  Segment segment_ = client_->OpenSegment({.name = "w", .size = Bytes(2)}).value();
};

TEST_F(CallLimitsTest, EveryCallEndsWithItsTime) {
  HoldEverything();
  for (const NamedCall& call : Calls()) {
    const absl::Time begin = absl::Now();
    EXPECT_THAT(call.call({.timeout = absl::Milliseconds(50)}),
                StatusIs(StatusCode::kDeadlineExceeded, ""))
        << call.name;
    EXPECT_LT(absl::Now() - begin, absl::Seconds(15)) << call.name;
  }
  EXPECT_TRUE(lease_.held());
  EXPECT_TRUE(segment_.attached());
  daemon_.HoldCalls(false);
}

TEST_F(CallLimitsTest, EveryCallIsCancelledWhileItWaits) {
  HoldEverything();
  for (const NamedCall& call : Calls()) {
    const size_t requests = daemon_.session_socket().requests().size();
    const auto cancellation = std::make_shared<Cancellation>();
    std::thread canceller([&] {
      EXPECT_TRUE(WaitFor([&] {
        return daemon_.held_calls() == 1 || daemon_.session_socket().requests().size() > requests;
      })) << call.name;
      cancellation->Cancel();
    });
    EXPECT_THAT(call.call({.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
                StatusIs(StatusCode::kCancelled, ""))
        << call.name;
    canceller.join();
    ASSERT_TRUE(WaitFor([&] { return daemon_.held_calls() == 0; }));
  }
  EXPECT_TRUE(lease_.held());
  EXPECT_TRUE(segment_.attached());
  daemon_.HoldCalls(false);
}

TEST_F(CallLimitsTest, ACallThatWasCancelledBeforehandAsksForNothing) {
  daemon_.HoldCalls(true);
  const size_t requests = daemon_.session_socket().requests().size();
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  for (const NamedCall& call : Calls()) {
    EXPECT_THAT(call.call({.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
                StatusIs(StatusCode::kCancelled, ""))
        << call.name;
  }
  EXPECT_EQ(daemon_.held_calls(), 0);
  EXPECT_EQ(daemon_.session_socket().requests().size(), requests);
  daemon_.HoldCalls(false);
}

TEST_F(CallLimitsTest, AFetchThatWasCancelledLeavesTheSessionInOrder) {
  ASSERT_OK_AND_ASSIGN(const Lease other, client_->Allocate({.size = Bytes(1)}));
  const auto cancellation = std::make_shared<Cancellation>();
  daemon_.session_socket().AnswerWith([&](const v1::SessionRequest& request) {
    // Its answer comes after the end of the call.
    cancellation->Cancel();
    return Refuse(5, "late answer " + std::to_string(request.fetch().block_ids(0)));
  });
  EXPECT_FALSE(lease_.fd({.cancellation = cancellation}).ok());
  EXPECT_THAT(other.fd(), StatusIs(StatusCode::kNotFound,
                                   "late answer " + std::to_string(other.facts().block_id)));
}

TEST_F(CallLimitsTest, AFetchIsCancelledWhileAnotherOneHasTheSocket) {
  ASSERT_OK_AND_ASSIGN(const Lease other, client_->Allocate({.size = Bytes(1)}));
  HoldEverything();
  const auto first_cancellation = std::make_shared<Cancellation>();
  std::thread first([&] {
    EXPECT_THAT(lease_.fd({.cancellation = first_cancellation}),
                StatusIs(StatusCode::kCancelled, ""));
  });
  ASSERT_TRUE(WaitFor([&] { return daemon_.session_socket().requests().size() == 2; }));
  // The same descriptor, and another one over the same socket.
  for (const Lease* lease : std::initializer_list<const Lease*>{&lease_, &other}) {
    EXPECT_THAT(lease->fd({.timeout = absl::Milliseconds(10)}),
                StatusIs(StatusCode::kDeadlineExceeded, "for 10ms"));
    const auto cancellation = std::make_shared<Cancellation>();
    std::thread canceller([&] { cancellation->Cancel(); });
    EXPECT_THAT(lease->fd({.cancellation = cancellation}), StatusIs(StatusCode::kCancelled, ""));
    canceller.join();
  }
  first_cancellation->Cancel();
  first.join();
  daemon_.HoldCalls(false);
}

TEST_F(CallLimitsTest, OneCancellationEndsAllCallsThatHaveIt) {
  HoldEverything();
  const auto cancellation = std::make_shared<Cancellation>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_THAT(client_->Allocate({.size = Bytes(1)}, {.cancellation = cancellation}),
                  StatusIs(StatusCode::kCancelled, ""));
    });
  }
  EXPECT_TRUE(WaitFor([&] { return daemon_.held_calls() == 4; }));
  cancellation->Cancel();
  for (std::thread& thread : threads) thread.join();
  daemon_.HoldCalls(false);
}

TEST(ConnectLimitsTest, ADaemonThatAcceptsNobodyIsWaitedForUntilCancelledOrTooLate) {
  const TempDir dir;
  const std::string path = dir.File("session.sock");
  // A listener with room for one, which has it.
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  ASSERT_OK_AND_ASSIGN(const UniqueFd first,
                       ConnectUnix(path, SocketKind::kSeqPacket, absl::Seconds(10)));
  EXPECT_THAT(Client::Connect({.runtime_dir = dir.path()}, {.timeout = absl::Milliseconds(50)}),
              StatusIs(StatusCode::kDeadlineExceeded, "accepts no connections in time"));
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] { cancellation->Cancel(); });
  EXPECT_THAT(Client::Connect({.runtime_dir = dir.path()},
                              {.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
              StatusIs(StatusCode::kCancelled, ""));
  canceller.join();
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/session_server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"
#include "tests/unit/session/session_client.h"

namespace heapbroker {
namespace {

SessionServerOptions ShortTimes() {
  SessionServerOptions options;
  options.hello_timeout = absl::Milliseconds(50);
  options.max_waiting_for_hello = 2;
  return options;
}

// Of all threads of this process, since it started.
absl::Duration ProcessorTime() {
  rusage usage;
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

TEST_F(SessionServerTest, AClientIsWelcomedUnderItsRealIdentity) {
  SessionClient client = Connect();
  const SessionId id = client.Open("me");
  const std::vector<Session> sessions = core_.sessions.List(SessionId(), 10, false);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].id, id);
  EXPECT_EQ(sessions[0].identity.name, "me");
  EXPECT_EQ(sessions[0].identity.pid, getpid());
  EXPECT_EQ(sessions[0].identity.uid, getuid());
}

TEST_F(SessionServerTest, AnObserverIsWelcomedAndNotListedWithClients) {
  SessionClient client = Connect();
  client.Open("ctl", true);
  EXPECT_TRUE(core_.sessions.List(SessionId(), 10, false).empty());
  EXPECT_EQ(core_.sessions.List(SessionId(), 10, true).size(), 1u);
}

TEST_F(SessionServerTest, ARefusedHelloIsAnsweredAndThenDropped) {
  const std::string fetch = FetchPacket(BlockId(1));
  for (int i = 0; i < 100; ++i) {
    SessionClient client = Connect();
    client.Send(HelloPacket(std::string(129, 'x')));
    // May arrive before the daemon closes, and is then not read; or fail.
    send(client.socket().get(), fetch.data(), fetch.size(), MSG_NOSIGNAL);
    const ReceivedReply reply = client.Receive();
    ASSERT_EQ(reply.message.refusal().code(),
              static_cast<uint32_t>(absl::StatusCode::kInvalidArgument))
        << i;
    ASSERT_TRUE(client.IsDropped()) << i;
  }
}

TEST_F(SessionServerTest, ManySessionsAreOpenAtOnce) {
  std::vector<SessionClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(Connect());
    clients.back().Open();
  }
  EXPECT_EQ(SessionCount(), 200u);
  clients.clear();
  EXPECT_TRUE(WaitFor([&] { return SessionCount() == 0; }));
}

TEST_F(SessionServerTest, StartAndEndOfASessionAreOneLogLineEach) {
  {
    SessionClient client = Connect();
    client.Open();
    client.Fetch(BlockId(1));
  }
  ASSERT_TRUE(WaitFor([&] { return SessionCount() == 0; }));
  server_->Stop();
  EXPECT_EQ(core_.logger.count(), 2);
}

TEST_F(SessionServerTest, StopEndsAllSessionsAndRefusesNewOnes) {
  SessionClient client = Connect();
  core_.Lease(client.Open());
  SessionClient silent = Connect();
  server_->Stop();
  EXPECT_EQ(SessionCount(), 0u);
  EXPECT_EQ(core_.live_allocations(), 0u);
  EXPECT_TRUE(client.IsDropped());
  EXPECT_TRUE(silent.IsDropped());
  EXPECT_TRUE(
      absl::IsUnavailable(ConnectUnix(path_, SocketKind::kSeqPacket, absl::Seconds(10)).status()));
  server_->Stop();  // Harmless.
}

TEST_F(SessionServerTest, WithoutDescriptorsLeftItWaitsQuietlyAndThenServes) {
  SessionClient working = Connect();
  working.Open();
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);

  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // The lowest number that is free becomes the limit, so that none is.
  const int lowest_free = dup(socket.get());
  close(lowest_free);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest_free), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ASSERT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  SessionClient client(std::move(socket));
  client.Send(HelloPacket());
  const absl::Duration used = ProcessorTime();
  EXPECT_FALSE(WaitReadable(client.socket(), absl::Milliseconds(300)).ok());
  EXPECT_LT(ProcessorTime() - used, absl::Milliseconds(150));
  EXPECT_TRUE(working.Fetch(BlockId(1)).message.has_refusal());

  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(client.Receive().message.has_welcome());
}

class ImpatientSessionServerTest : public SessionServerTest {
 protected:
  ImpatientSessionServerTest() : SessionServerTest(ShortTimes()) {}
};

TEST_F(ImpatientSessionServerTest, OneThatSaysNothingIsDropped) {
  SessionClient silent = Connect();
  const absl::Time start = absl::Now();
  EXPECT_TRUE(silent.IsDropped());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(40));
}

TEST_F(ImpatientSessionServerTest, OneThatSaidHelloMayBeQuietForLonger) {
  SessionClient client = Connect();
  client.Open();
  for (int i = 0; i < 3; ++i) {
    SessionClient silent = Connect();
    EXPECT_TRUE(silent.IsDropped());
  }
  EXPECT_TRUE(client.Fetch(BlockId(1)).message.has_refusal());
  EXPECT_EQ(SessionCount(), 1u);
}

class CrowdedSessionServerTest : public SessionServerTest {
 protected:
  static SessionServerOptions Options() {
    SessionServerOptions options;
    options.hello_timeout = absl::Hours(1);
    options.max_waiting_for_hello = 2;
    return options;
  }
  CrowdedSessionServerTest() : SessionServerTest(Options()) {}
};

TEST_F(CrowdedSessionServerTest, SilentConnectionsCannotKeepOthersOut) {
  SessionClient first = Connect();
  SessionClient second = Connect();
  SessionClient third = Connect();
  EXPECT_TRUE(first.IsDropped());
  third.Open();
  second.Open();
  SessionClient fourth = Connect();
  fourth.Open();
}

TEST_F(CrowdedSessionServerTest, FailedHandshakesDoNotFillTheLog) {
  for (int i = 0; i < 300; ++i) {
    SessionClient client = Connect();
    client.Send("garbage");
    EXPECT_TRUE(client.IsDropped());
  }
  EXPECT_LE(core_.logger.count(), 20);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"
#include "tests/unit/session/session_client.h"

namespace heapbroker {
namespace {

// A client in a process of its own, which a test can kill.
class ClientProcess {
 public:
  // `main` runs in the new process; it gets the writing end of a pipe.
  explicit ClientProcess(const std::function<void(int)>& main) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    from_.Reset(ends[0]);
    UniqueFd to(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      main(to.get());
      _exit(0);
    }
  }
  ~ClientProcess() { Kill(); }

  uint64_t ReadNumber() {
    uint64_t number = 0;
    EXPECT_EQ(read(from_.get(), &number, sizeof number), static_cast<ssize_t>(sizeof number));
    return number;
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  UniqueFd from_;
  pid_t pid_ = -1;
};

void WriteNumber(int fd, uint64_t number) {
  if (write(fd, &number, sizeof number) != static_cast<ssize_t>(sizeof number)) _exit(1);
}

class SessionEndTest : public SessionServerTest {
 protected:
  bool EverythingIsBack() { return SessionCount() == 0 && core_.live_allocations() == 0; }
};

TEST_F(SessionEndTest, ClosingTheSocketGivesEverythingBack) {
  std::optional<SessionClient> client(Connect());
  const SessionId session = client->Open();
  for (int i = 0; i < 100; ++i) core_.Lease(session);
  EXPECT_EQ(core_.live_allocations(), 100u);
  client.reset();
  EXPECT_TRUE(WaitFor([&] { return EverythingIsBack(); }, absl::Seconds(1)));
}

TEST_F(SessionEndTest, ClosingOneSideIsAnEnd) {
  SessionClient client = Connect();
  client.Open();
  ASSERT_EQ(shutdown(client.socket().get(), SHUT_WR), 0);
  EXPECT_TRUE(client.IsDropped());
  EXPECT_EQ(SessionCount(), 0u);
}

TEST_F(SessionEndTest, DeathOfTheProcessGivesEverythingBack) {
  ClientProcess process([&](int pipe) {
    SessionClient client = Connect();
    WriteNumber(pipe, client.Open().value());
    while (true) pause();
  });
  const SessionId session(process.ReadNumber());
  for (int i = 0; i < 100; ++i) core_.Lease(session);
  process.Kill();
  EXPECT_TRUE(WaitFor([&] { return EverythingIsBack(); }, absl::Seconds(1)));
}

TEST_F(SessionEndTest, AChildThatKeepsTheSocketDoesNotProlongIt) {
  ClientProcess parent([&](int pipe) {
    SessionClient client = Connect();
    WriteNumber(pipe, client.Open().value());
    const pid_t child = fork();
    if (child == 0) {
      while (true) pause();
    }
    WriteNumber(pipe, child);
    while (true) pause();
  });
  core_.Lease(SessionId(parent.ReadNumber()));
  const pid_t child = static_cast<pid_t>(parent.ReadNumber());
  EXPECT_EQ(SessionCount(), 1u);
  parent.Kill();
  EXPECT_TRUE(WaitFor([&] { return EverythingIsBack(); }, absl::Seconds(1)));
  EXPECT_EQ(kill(child, 0), 0);  // And has the socket to this moment.
  kill(child, SIGKILL);
}

TEST_F(SessionEndTest, DeathBeforeTheHelloIsAnsweredLeavesNothing) {
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 20; ++i) {
    ClientProcess process([&](int pipe) {
      SessionClient client = Connect();
      client.Send(HelloPacket());
      WriteNumber(pipe, 1);
      while (true) pause();
    });
    process.ReadNumber();
    process.Kill();
  }
  EXPECT_TRUE(WaitFor([&] { return EverythingIsBack() && OwnDescriptors() == before; }));
}

TEST_F(SessionEndTest, AProcessMayHaveSeveralSessionsThatEndApart) {
  std::optional<SessionClient> first(Connect());
  SessionClient second = Connect();
  core_.Lease(first->Open());
  const BlockId block = core_.Lease(second.Open());
  first.reset();
  EXPECT_TRUE(WaitFor([&] { return core_.live_allocations() == 1; }));
  EXPECT_EQ(second.Fetch(block).descriptors.size(), 1u);
}

}  // namespace
}  // namespace heapbroker

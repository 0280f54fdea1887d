// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

// Another process that connects and then waits to be killed.
class PeerTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = dir_.File("s.sock");
    absl::StatusOr<UniqueFd> listener = ListenUnix(path, SocketKind::kSeqPacket, 0600);
    ASSERT_TRUE(listener.ok()) << listener.status();
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      const absl::StatusOr<UniqueFd> client =
          ConnectUnix(path, SocketKind::kSeqPacket, absl::Seconds(10));
      while (client.ok()) pause();
      _exit(1);
    }
    ASSERT_TRUE(WaitReadable(*listener, absl::Seconds(10)).ok());
    absl::StatusOr<UniqueFd> socket = AcceptUnix(*listener);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }
  void TearDown() override {
    if (child_ > 0) KillChild();
  }

  void KillChild() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  TempDir dir_;
  pid_t child_ = -1;
  UniqueFd socket_;
};

bool IsReadable(const UniqueFd& fd) {
  pollfd entry{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

TEST_F(PeerTest, IsWhoConnected) {
  const absl::StatusOr<PeerCredentials> peer = GetPeerCredentials(socket_);
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->uid, getuid());
  EXPECT_EQ(peer->gid, getgid());
  EXPECT_EQ(peer->pid, child_);
}

TEST_F(PeerTest, ItsPidfdBecomesReadableWhenItEnds) {
  const absl::StatusOr<UniqueFd> pidfd = OpenPeerPidfd(socket_);
  ASSERT_TRUE(pidfd.ok() && *pidfd) << pidfd.status();
  EXPECT_EQ(fcntl(pidfd->get(), F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(IsReadable(*pidfd));
  kill(child_, SIGKILL);
  EXPECT_TRUE(WaitFor([&] { return IsReadable(*pidfd); }));
}

TEST_F(PeerTest, OneThatHasEndedIsNeverTakenForARunningOne) {
  KillChild();
  const absl::StatusOr<UniqueFd> pidfd = OpenPeerPidfd(socket_);
  // Some kernels hand out the descriptor of a process that is gone.
  if (pidfd.ok()) {
    EXPECT_TRUE(IsReadable(*pidfd));
  } else {
    EXPECT_TRUE(absl::IsUnavailable(pidfd.status())) << pidfd.status();
  }
}

TEST(PeerOfNothingTest, AskingSomethingElseThanASocketIsAnError) {
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(GetPeerCredentials(file).ok());
  EXPECT_FALSE(OpenPeerPidfd(file).ok());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/unix_socket.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kLong = absl::Seconds(10);

class UnixSocketTest : public testing::Test {
 protected:
  UniqueFd Listen(SocketKind kind) {
    absl::StatusOr<UniqueFd> fd = ListenUnix(path_, kind, 0600);
    EXPECT_TRUE(fd.ok()) << fd.status();
    return fd.ok() ? *std::move(fd) : UniqueFd();
  }

  TempDir dir_;
  const std::string path_ = dir_.File("s.sock");
};

void ExpectCloseOnExec(const UniqueFd& fd) { EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC); }
bool IsNonBlocking(const UniqueFd& fd) { return (fcntl(fd.get(), F_GETFL) & O_NONBLOCK) != 0; }

TEST_F(UnixSocketTest, ConnectsAndAcceptsBothKinds) {
  for (const SocketKind kind : {SocketKind::kStream, SocketKind::kSeqPacket}) {
    const UniqueFd listener = Listen(kind);
    const absl::StatusOr<UniqueFd> client = ConnectUnix(path_, kind, kLong);
    ASSERT_TRUE(client.ok()) << client.status();
    const absl::StatusOr<UniqueFd> server = AcceptUnix(listener);
    ASSERT_TRUE(server.ok() && *server) << server.status();
    ASSERT_EQ(send(server->get(), "x", 1, 0), 1);
    char byte = 0;
    ASSERT_EQ(recv(client->get(), &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
    unlink(path_.c_str());
  }
}

TEST_F(UnixSocketTest, EveryDescriptorHasCloseOnExecAndOnlyTheClientsBlocks) {
  const UniqueFd listener = Listen(SocketKind::kStream);
  const absl::StatusOr<UniqueFd> client = ConnectUnix(path_, SocketKind::kStream, kLong);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<UniqueFd> server = AcceptUnix(listener);
  ASSERT_TRUE(server.ok()) << server.status();
  ExpectCloseOnExec(listener);
  ExpectCloseOnExec(*client);
  ExpectCloseOnExec(*server);
  EXPECT_TRUE(IsNonBlocking(listener));
  EXPECT_TRUE(IsNonBlocking(*server));
  EXPECT_FALSE(IsNonBlocking(*client));
}

TEST_F(UnixSocketTest, AcceptingNobodyIsNoError) {
  const UniqueFd listener = Listen(SocketKind::kStream);
  const absl::StatusOr<UniqueFd> none = AcceptUnix(listener);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(*none);
}

TEST_F(UnixSocketTest, AcceptingWithoutDescriptorsLeftSaysSo) {
  const UniqueFd listener = Listen(SocketKind::kStream);
  const absl::StatusOr<UniqueFd> client = ConnectUnix(path_, SocketKind::kStream, kLong);
  ASSERT_TRUE(client.ok()) << client.status();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = AcceptUnix(listener).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(AcceptUnix(listener)->valid());
}

TEST_F(UnixSocketTest, TheFileHasExactlyTheModeWhateverTheUmask) {
  for (const mode_t mask : {0000, 0022, 0177, 0777}) {
    const mode_t before = umask(mask);
    const absl::StatusOr<UniqueFd> fd = ListenUnix(path_, SocketKind::kStream, 0660);
    umask(before);
    ASSERT_TRUE(fd.ok()) << fd.status();
    struct stat info;
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0660u) << mask;
    unlink(path_.c_str());
  }
}

TEST_F(UnixSocketTest, ListeningLeavesWhatIsThereAlone) {
  const UniqueFd first = Listen(SocketKind::kStream);
  const absl::Status second = ListenUnix(path_, SocketKind::kStream, 0600).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_TRUE(absl::StrContains(second.message(), path_)) << second;
  EXPECT_TRUE(ConnectUnix(path_, SocketKind::kStream, kLong).ok());
}

TEST_F(UnixSocketTest, TellsNothingThereFromNobodyListening) {
  const absl::Status missing = ConnectUnix(path_, SocketKind::kStream, kLong).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_TRUE(absl::StrContains(missing.message(), path_)) << missing;
  Listen(SocketKind::kStream).Reset();
  const absl::Status stale = ConnectUnix(path_, SocketKind::kStream, kLong).status();
  EXPECT_TRUE(absl::IsUnavailable(stale)) << stale;
  EXPECT_TRUE(absl::StrContains(stale.message(), path_)) << stale;
}

TEST_F(UnixSocketTest, RefusesPathsThatFitNoAddress) {
  const std::string longest(kMaxSocketPathBytes, 'x');
  EXPECT_TRUE(absl::IsNotFound(ConnectUnix(longest, SocketKind::kStream, kLong).status()));
  const absl::Status too_long = ConnectUnix(longest + "x", SocketKind::kStream, kLong).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_long)) << too_long;
  EXPECT_TRUE(absl::StrContains(too_long.message(), "108")) << too_long;
  EXPECT_TRUE(absl::StrContains(too_long.message(), "107")) << too_long;
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectUnix("", SocketKind::kStream, kLong).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ListenUnix(std::string("/tmp/a\0b", 8), SocketKind::kStream, 0600).status()));
}

TEST_F(UnixSocketTest, SaysThatAPathLeadsThroughAFile) {
  std::ofstream(dir_.File("file")) << "x";
  const absl::Status status =
      ConnectUnix(dir_.File("file/s.sock"), SocketKind::kStream, kLong).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(UnixSocketTest, RefusesASocketOfAnotherKind) {
  const UniqueFd listener = Listen(SocketKind::kSeqPacket);
  const absl::Status status = ConnectUnix(path_, SocketKind::kStream, kLong).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(UnixSocketTest, ConnectingToAFullListenerTimesOut) {
  const UniqueFd listener = Listen(SocketKind::kSeqPacket);
  ASSERT_EQ(listen(listener.get(), 0), 0);  // Room for one.
  std::vector<UniqueFd> clients;
  absl::Status status;
  for (int i = 0; i < 4 && status.ok(); ++i) {
    absl::StatusOr<UniqueFd> client =
        ConnectUnix(path_, SocketKind::kSeqPacket, absl::Milliseconds(20));
    status = client.status();
    if (client.ok()) clients.push_back(*std::move(client));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(UnixSocketTest, WaitingToReadEndsWithTheTimeoutOrTheAnswer) {
  const UniqueFd listener = Listen(SocketKind::kSeqPacket);
  const absl::StatusOr<UniqueFd> client = ConnectUnix(path_, SocketKind::kSeqPacket, kLong);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<UniqueFd> server = AcceptUnix(listener);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(WaitReadable(*client, absl::ZeroDuration())));
  EXPECT_TRUE(absl::IsDeadlineExceeded(WaitReadable(*client, absl::Milliseconds(5))));
  ASSERT_EQ(send(server->get(), "x", 1, 0), 1);
  EXPECT_TRUE(WaitReadable(*client, absl::InfiniteDuration()).ok());
}

}  // namespace
}  // namespace heapbroker

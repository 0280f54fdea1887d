// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/connection_acceptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/posix/descriptors.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

class ConnectionAcceptorTest : public testing::Test {
 protected:
  explicit ConnectionAcceptorTest(const ConnectionAcceptor::Limits& limits = {
                                      .connections = 1000}) {
    absl::StatusOr<UniqueFd> listener = ListenUnix(path_, SocketKind::kStream, 0600);
    EXPECT_TRUE(listener.ok()) << listener.status();
    auto acceptor =
        ConnectionAcceptor::Start(*std::move(listener), limits, [this](UniqueFd connection) {
          MutexLock lock(mutex_);
          accepted_.push_back(std::move(connection));
        });
    EXPECT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
  }

  UniqueFd Connect() {
    absl::StatusOr<UniqueFd> socket = ConnectUnix(path_, SocketKind::kStream, absl::Seconds(5));
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }
  bool WaitForConnections(size_t count) {
    return WaitFor([this, count] { return acceptor_->connections() == count; });
  }

  TempDir directory_;
  const std::string path_ = directory_.File("broker.sock");
  Mutex mutex_;
  std::vector<UniqueFd> accepted_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, HandsOutNonBlockingSocketsThatCloseOnExec) {
  const UniqueFd client = Connect();
  ASSERT_TRUE(WaitForConnections(1));
  ASSERT_TRUE(WaitFor([this] {
    MutexLock lock(mutex_);
    return accepted_.size() == 1;
  }));
  MutexLock lock(mutex_);
  EXPECT_NE(fcntl(accepted_[0].get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(accepted_[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ConnectionAcceptorTest, CountsAConnectionDownThoughItsHandlerKeepsTheSocket) {
  for (int round = 0; round < 100; ++round) {
    const UniqueFd one = Connect();
    UniqueFd two = Connect();
    ASSERT_TRUE(WaitForConnections(2));
    two.Reset();
    ASSERT_TRUE(WaitForConnections(1));
  }
  EXPECT_TRUE(WaitForConnections(0));
}

TEST_F(ConnectionAcceptorTest, CountsAConnectionDownThatTheHandlersSideEnded) {
  const UniqueFd client = Connect();
  ASSERT_TRUE(WaitForConnections(1));
  ASSERT_TRUE(WaitFor([this] {
    MutexLock lock(mutex_);
    return accepted_.size() == 1;
  }));
  {
    MutexLock lock(mutex_);
    shutdown(accepted_[0].get(), SHUT_RDWR);
  }
  EXPECT_TRUE(WaitForConnections(0));
}

// One who has said that nothing more will come, and reads nothing, must not leave the
// handler with a socket that it cannot get rid of, and nobody counts.
TEST_F(ConnectionAcceptorTest, EndsAConnectionForItsHandlerWhenThePeerEndsItsHalf) {
  const UniqueFd client = Connect();
  ASSERT_TRUE(WaitForConnections(1));
  ASSERT_TRUE(WaitFor([this] {
    MutexLock lock(mutex_);
    return accepted_.size() == 1;
  }));
  MutexLock lock(mutex_);
  const std::string bytes(65536, 'x');
  while (send(accepted_[0].get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
  ASSERT_EQ(shutdown(client.get(), SHUT_WR), 0);
  ASSERT_TRUE(WaitForConnections(0));
  EXPECT_EQ(send(accepted_[0].get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(ConnectionAcceptorTest, WaitsQuietlyWhileDescriptorsAreShortAndThenAccepts) {
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(client.valid());
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  // The lowest free number is the first that is not allowed.
  const int next = dup(client.get());
  close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);

  timespec before{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  // Half a second in which nothing may happen.
  EXPECT_EQ(WaitReadable(client, absl::Milliseconds(500)).code(),
            absl::StatusCode::kDeadlineExceeded);
  timespec after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  EXPECT_EQ(acceptor_->connections(), 0u);
  EXPECT_LT(absl::TimeFromTimespec(after) - absl::TimeFromTimespec(before),
            absl::Milliseconds(100));

  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(WaitForConnections(1));
}

class FullConnectionAcceptorTest : public ConnectionAcceptorTest {
 protected:
  static constexpr size_t kMaxConnections = 3;

  // `reserved`: for the user of the test, where that is an administrator.
  explicit FullConnectionAcceptorTest(size_t reserved = 0)
      : ConnectionAcceptorTest({kMaxConnections, reserved, {geteuid()}}) {
    while (held_.size() < kMaxConnections) held_.push_back(Connect());
    EXPECT_TRUE(WaitForConnections(kMaxConnections));
  }

  // Whether the acceptor has closed `connection`.
  static bool IsClosed(const UniqueFd& connection) {
    char byte = 0;
    return WaitReadable(connection, absl::Seconds(5)).ok() &&
           recv(connection.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  size_t accepted() {
    MutexLock lock(mutex_);
    return accepted_.size();
  }

  std::vector<UniqueFd> held_;
};

TEST_F(FullConnectionAcceptorTest, ClosesWhatComesBeyondTheBoundAtOnceAndCountsIt) {
  // More than the kernel's queue takes where it is left to fill up.
  constexpr uint64_t kMore = 500;
  const uint64_t before = OpenDescriptorCount();
  for (uint64_t i = 0; i < kMore; ++i) {
    const UniqueFd more = Connect();
    ASSERT_TRUE(IsClosed(more)) << i;
  }
  EXPECT_EQ(acceptor_->refused(), kMore);
  EXPECT_EQ(acceptor_->connections(), kMaxConnections);
  EXPECT_EQ(accepted(), kMaxConnections);
  EXPECT_TRUE(WaitFor([&] { return OpenDescriptorCount() == before; }));
}

TEST_F(FullConnectionAcceptorTest, TakesOneMoreForEachThatEnds) {
  EXPECT_TRUE(IsClosed(Connect()));
  held_.pop_back();
  ASSERT_TRUE(WaitForConnections(kMaxConnections - 1));
  const UniqueFd next = Connect();
  EXPECT_TRUE(WaitForConnections(kMaxConnections));
  EXPECT_TRUE(WaitFor([this] { return accepted() == kMaxConnections + 1; }));
  EXPECT_TRUE(IsClosed(Connect()));
  EXPECT_EQ(acceptor_->refused(), 2u);
}

class ReservingAcceptorTest : public FullConnectionAcceptorTest {
 protected:
  static constexpr size_t kReserved = 2;

  ReservingAcceptorTest() : FullConnectionAcceptorTest(kReserved) {}
};

TEST_F(ReservingAcceptorTest, TakesAFewMoreOfAdministrators) {
  for (size_t i = 1; i <= kReserved; ++i) {
    held_.push_back(Connect());
    EXPECT_TRUE(WaitForConnections(kMaxConnections + i));
  }
  EXPECT_TRUE(IsClosed(Connect()));
  EXPECT_EQ(acceptor_->refused(), 1u);
}

TEST_F(ReservingAcceptorTest, TakesNoMoreOfOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  // Whoever connects is known by this.
  ASSERT_EQ(seteuid(1001), 0);
  const UniqueFd other = Connect();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_TRUE(IsClosed(other));
  EXPECT_EQ(acceptor_->connections(), kMaxConnections);
  held_.push_back(Connect());
  EXPECT_TRUE(WaitForConnections(kMaxConnections + 1));
}

TEST_F(ConnectionAcceptorTest, EndsConnectionsOnBothSides) {
  const UniqueFd client = Connect();
  ASSERT_TRUE(WaitForConnections(1));
  acceptor_->Stop();
  acceptor_->ShutDownConnections();
  ASSERT_TRUE(WaitReadable(client, absl::Seconds(5)).ok());
  char byte = 0;
  EXPECT_EQ(recv(client.get(), &byte, 1, 0), 0);
}

TEST_F(ConnectionAcceptorTest, AcceptsNobodyAfterItWasStopped) {
  acceptor_->Stop();
  acceptor_->Stop();
  EXPECT_EQ(ConnectUnix(path_, SocketKind::kStream, absl::Seconds(5)).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/posix/unique_fd.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {
namespace {

// Sets an environment variable, or removes it, while it lives.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const char* value) : name_(std::move(name)) {
    const char* before = getenv(name_.c_str());
    if (before != nullptr) before_ = before;
    Set(value);
  }
  ~ScopedVariable() { Set(before_ ? before_->c_str() : nullptr); }

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_.c_str());
    } else {
      setenv(name_.c_str(), value, 1);
    }
  }

  const std::string name_;
  std::optional<std::string> before_;
};

TEST(ConnectTest, UsesTheDirectoryOfTheEnvironment) {
  MemfdBlockSource source;
  FakeDaemon daemon(source);
  const std::string dir = daemon.runtime_dir();
  ScopedVariable variable("HEAPBROKER_RUNTIME_DIR", dir.c_str());
  EXPECT_THAT(Client::Connect({}), IsOk());
}

TEST(ConnectTest, ANamedDirectoryWithoutASocketIsNotFoundEvenWhereAnotherHasOne) {
  MemfdBlockSource source;
  FakeDaemon daemon(source);
  const std::string dir = daemon.runtime_dir();
  ScopedVariable variable("HEAPBROKER_RUNTIME_DIR", dir.c_str());
  const TempDir empty;
  EXPECT_THAT(Client::Connect({.runtime_dir = empty.path()}),
              StatusIs(absl::StatusCode::kNotFound, "start the daemon"));
  EXPECT_THAT(Client::Connect({.runtime_dir = empty.File("missing")}),
              StatusIs(absl::StatusCode::kNotFound, "HEAPBROKER_RUNTIME_DIR"));
}

TEST(ConnectTest, FallsBackToTheUsersDirectory) {
  if (access("/run/heapbroker/session.sock", F_OK) == 0) {
    GTEST_SKIP() << "a daemon of this machine uses the system's directory";
  }
  MemfdBlockSource source;
  FakeDaemon daemon(source);
  const TempDir user;
  const std::string link = user.File("heapbroker");
  ASSERT_EQ(symlink(daemon.runtime_dir().c_str(), link.c_str()), 0);
  ScopedVariable variable("HEAPBROKER_RUNTIME_DIR", nullptr);
  ScopedVariable xdg("XDG_RUNTIME_DIR", user.path().c_str());
  EXPECT_THAT(Client::Connect({}), IsOk());
}

TEST(ConnectTest, ANonDirectoryIsTheAnswerAndNotSkipped) {
  const TempDir dir;
  const std::string file = dir.File("file");
  const UniqueFd created(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(created.valid());
  EXPECT_THAT(Client::Connect({.runtime_dir = file}),
              StatusIs(absl::StatusCode::kFailedPrecondition, file));
}

TEST(ConnectTest, ASocketOfAnotherUserIsPermissionDenied) {
  if (geteuid() == 0 && seteuid(65534) != 0) GTEST_SKIP() << "needs another user";
  struct Restore {
    ~Restore() { (void)!seteuid(getuid()); }
  } restore;
  const TempDir dir;
  const UniqueFd listener =
      ListenUnix(dir.File("session.sock"), SocketKind::kSeqPacket, 0000).value();
  EXPECT_THAT(Client::Connect({.runtime_dir = dir.path()}),
              StatusIs(absl::StatusCode::kPermissionDenied, "session.sock"));
}

TEST(ConnectTest, ASocketWithoutAListenerIsUnavailable) {
  const TempDir dir;
  {
    const UniqueFd gone =
        ListenUnix(dir.File("session.sock"), SocketKind::kSeqPacket, 0600).value();
  }
  EXPECT_THAT(Client::Connect({.runtime_dir = dir.path()}),
              StatusIs(absl::StatusCode::kUnavailable, "start the daemon"));
}

TEST(ConnectTest, APathThatIsTooLongIsInvalid) {
  EXPECT_THAT(Client::Connect({.runtime_dir = "/" + std::string(200, 'x')}),
              StatusIs(absl::StatusCode::kInvalidArgument, "shorter runtime directory"));
}

class HelloTest : public testing::Test {
 protected:
  absl::Status ConnectTo(FakeSessionSocket::Answerer answerer,
                         absl::Duration timeout = absl::Seconds(5)) {
    const FakeSessionSocket socket(dir_.File("session.sock"), std::move(answerer));
    return Client::Connect({.runtime_dir = dir_.path(), .call_timeout = timeout}).status();
  }

  const TempDir dir_;
};

TEST_F(HelloTest, ARefusalOfTheVersionIsPassedOn) {
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                return Refuse(9, "protocol version 1 is not spoken here, only 2");
              }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "protocol version 1 is not spoken here, only 2"));
}

TEST_F(HelloTest, ADaemonOfAnotherMajorVersionIsRefused) {
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                SessionAnswer answer;
                answer.reply.mutable_welcome()->set_token(kFakeToken);
                answer.reply.mutable_welcome()->set_protocol_major(2);
                answer.reply.mutable_welcome()->set_protocol_minor(5);
                return answer;
              }),
              StatusIs(absl::StatusCode::kFailedPrecondition, "version 2.5 and this library 1.0"));
}

TEST_F(HelloTest, AnotherMinorVersionIsFine) {
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                SessionAnswer answer;
                answer.reply.mutable_welcome()->set_token(kFakeToken);
                answer.reply.mutable_welcome()->set_protocol_major(1);
                answer.reply.mutable_welcome()->set_protocol_minor(7);
                return answer;
              }),
              IsOk());
}

TEST_F(HelloTest, AnAnswerThatIsNoWelcomeIsInternal) {
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                SessionAnswer answer;
                answer.reply.mutable_fetched()->add_block_ids(1);
                return answer;
              }),
              StatusIs(absl::StatusCode::kInternal, "something else"));
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                SessionAnswer answer;
                answer.reply.mutable_welcome()->set_token("short");
                answer.reply.mutable_welcome()->set_protocol_major(1);
                return answer;
              }),
              StatusIs(absl::StatusCode::kInternal, "token of 5 bytes"));
}

// What was made until then goes as in any other end: a leak sanitizer sees if not.
TEST_F(HelloTest, DevicesThatMakeNoSenseAreInternal) {
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                SessionAnswer answer;
                answer.reply.mutable_welcome()->set_token(kFakeToken);
                answer.reply.mutable_welcome()->set_protocol_major(1);
                answer.reply.mutable_welcome()->add_devices()->set_device_uuid("short");
                return answer;
              }),
              StatusIs(absl::StatusCode::kInternal, "UUID of 5 bytes"));
}

TEST_F(HelloTest, ADaemonThatHangsUpIsUnavailable) {
  EXPECT_THAT(ConnectTo([](const v1::SessionRequest&) {
                SessionAnswer answer;
                answer.then = SessionAnswer::Then::kHangUp;
                return answer;
              }),
              StatusIs(absl::StatusCode::kUnavailable, ""));
}

TEST_F(HelloTest, ADaemonThatDoesNotAnswerEndsWithTheTimeout) {
  EXPECT_THAT(ConnectTo(
                  [](const v1::SessionRequest&) {
                    SessionAnswer answer;
                    answer.then = SessionAnswer::Then::kIgnore;
                    return answer;
                  },
                  absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "did not answer on its session socket within 50ms"));
}

// Speaks just enough HTTP/2 for a client to send its call, then closes: what a
// client sees of a daemon that is killed in the middle of one.
void DieInTheMiddleOfACall(const UniqueFd& listener) {
  const int accepted = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(accepted, 0);
  const UniqueFd connection(accepted);
  constexpr char kSettings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
  ASSERT_EQ(send(connection.get(), kSettings, sizeof kSettings, MSG_NOSIGNAL), 9);
  constexpr size_t kPreface = 24;
  constexpr size_t kFrameHead = 9;
  constexpr char kHeaders = 1;
  std::string received;
  size_t frame = kPreface;
  while (true) {
    char buffer[4096];
    const ssize_t got = recv(connection.get(), buffer, sizeof buffer, 0);
    ASSERT_GT(got, 0);
    received.append(buffer, static_cast<size_t>(got));
    while (received.size() >= frame + kFrameHead) {
      if (received[frame + 3] == kHeaders) return;
      const auto byte = [&](size_t i) { return static_cast<unsigned char>(received[frame + i]); };
      frame += kFrameHead + (size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2));
    }
  }
}

TEST(LostDaemonTest, ADaemonThatDiesInTheMiddleOfACallIsUnavailable) {
  MemfdBlockSource source;
  const TempDir dir;
  FakeSessionSocket session(dir.File("session.sock"), [](const v1::SessionRequest&) {
    SessionAnswer answer;
    answer.reply.mutable_welcome()->set_token(kFakeToken);
    answer.reply.mutable_welcome()->set_protocol_major(1);
    return answer;
  });
  // Blocking, so that accept waits.
  UniqueFd listener = ListenUnix(dir.File("broker.sock"), SocketKind::kStream, 0600).value();
  ASSERT_EQ(fcntl(listener.get(), F_SETFL, 0), 0);
  std::thread daemon([&] {
    DieInTheMiddleOfACall(listener);
    listener.Reset();
  });
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> client,
                       Client::Connect({.runtime_dir = dir.path()}));
  EXPECT_THAT(client->Allocate({.size = Bytes(1)}),
              StatusIs(absl::StatusCode::kUnavailable, "try again when the daemon is back"));
  daemon.join();
}

}  // namespace
}  // namespace heapbroker

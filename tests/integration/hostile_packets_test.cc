// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Bad packets on session.sock.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/integration/hostile_fixture.h"

namespace heapbroker {
namespace {

class HostilePacketsTest : public HostileFixture {
 protected:
  absl::StatusOr<RawSocket> Connect() { return RawSocket::Connect(SocketPath("session.sock")); }

  // The text of the refusal that `packet` gets as the first one of a connection,
  // which the daemon then must close.
  std::string RefusalOf(const std::string& packet) {
    auto socket = Connect();
    EXPECT_THAT(socket, IsOk());
    if (!socket.ok()) return "";
    const auto reply = socket->Ask(packet);
    EXPECT_THAT(reply, IsOk());
    EXPECT_TRUE(socket->IsDropped());
    if (!reply.ok()) return "";
    EXPECT_TRUE(reply->message.has_refusal()) << reply->message.ShortDebugString();
    return reply->message.refusal().message();
  }
};

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(HostilePacketsTest, AnotherMajorVersionIsRefusedWithBothVersions) {
  EXPECT_THAT(RefusalOf(HelloPacket("future", 7)), AllOf(HasSubstr("7.0"), HasSubstr("1.0")));
}

TEST_F(HostilePacketsTest, NamesThatAreTooLongOrNoTextAreRefused) {
  EXPECT_THAT(RefusalOf(HelloPacket(std::string(129, 'n'))), HasSubstr("128"));
  EXPECT_THAT(RefusalOf(HelloPacket("")), HasSubstr("name"));
  EXPECT_THAT(RefusalOf(HelloPacket("two\nlines")), HasSubstr("name"));
  std::string bad = HelloPacket("abXc");
  bad[bad.find('X')] = '\xff';
  EXPECT_THAT(RefusalOf(bad), HasSubstr("UTF-8"));
}

TEST_F(HostilePacketsTest, WhatIsNoHelloIsRefused) {
  EXPECT_THAT(RefusalOf(FetchPacket(1)), HasSubstr("hello"));
  EXPECT_THAT(RefusalOf("\xff\xff\xff\xff garbage"), HasSubstr("SessionRequest"));
  EXPECT_NE(RefusalOf(std::string(5000, 'x')), "");
}

TEST_F(HostilePacketsTest, ASecondHelloEndsTheSession) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  ASSERT_THAT(session.Allocate(65536), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto reply, session.socket().Ask(HelloPacket("again")));
  EXPECT_TRUE(reply.message.has_refusal());
  EXPECT_TRUE(session.socket().IsDropped());
  EXPECT_TRUE(WaitFor([&] { return Held() == before_; })) << Held();
}

TEST_F(HostilePacketsTest, GarbageEndsTheSession) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  ASSERT_THAT(session.Allocate(65536), IsOk());
  ASSERT_THAT(session.socket().Send("\xff\xff\xff\xff"), IsOk());
  EXPECT_TRUE(session.socket().IsDropped());
  EXPECT_TRUE(WaitFor([&] { return Held() == before_; })) << Held();
}

TEST_F(HostilePacketsTest, UnexpectedDescriptorsAreNeverOpened) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(null.valid());
  const std::vector<int> many(253, null.get());
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
    ASSERT_OK_AND_ASSIGN(const auto reply, session.socket().Ask(FetchPacket(1), many));
    EXPECT_THAT(reply.message.refusal().message(), HasSubstr("descriptors"));
    // In the daemon, while the session that sent them is still open here.
    EXPECT_LE(DaemonDescriptors(), descriptors_before_ + 100);
    EXPECT_TRUE(session.socket().IsDropped());
  }
}

TEST_F(HostilePacketsTest, ABlockCannotBeFetchedWithoutItsLease) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  EXPECT_THAT(session.Fetch(12345), StatusIs(absl::StatusCode::kNotFound, "12345"));
  EXPECT_THAT(session.Fetch(0), StatusIs(absl::StatusCode::kNotFound, ""));
  ASSERT_OK_AND_ASSIGN(const v1::Block block, session.Allocate(65536));
  ASSERT_THAT(session.Fetch(block.block_id()), IsOk());
  ASSERT_THAT(session.Release(block.block_id()), IsOk());
  EXPECT_THAT(session.Fetch(block.block_id()), StatusIs(absl::StatusCode::kNotFound, ""));
  // Out of the cache, to end with the session.
  ASSERT_THAT(session.Allocate(65536), IsOk());
}

TEST_F(HostilePacketsTest, PeersThatHangUpInTheMiddleOfEverythingAreForgotten) {
  // The daemon's answers go to sockets that are closed: a SIGPIPE would end it.
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK_AND_ASSIGN(RawSocket socket, Connect());
    if (i % 3 == 0) continue;
    ASSERT_THAT(socket.Send(HelloPacket("short")), IsOk());
    if (i % 3 == 1) continue;
    // May fail: the daemon can be faster.
    static_cast<void>(socket.Send(FetchPacket(i)));
  }
  EXPECT_TRUE(daemon_->process().Running());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/posix/packet.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"
#include "tests/unit/session/session_client.h"

namespace heapbroker {
namespace {

// Packets that no client of ours would send. Whoever sends one is dropped, and
// nobody else notices.
class BadPacketsTest : public SessionServerTest {
 protected:
  BadPacketsTest() : bystander_(Connect()) { block_ = core_.Lease(bystander_.Open("bystander")); }
  ~BadPacketsTest() override {
    EXPECT_EQ(bystander_.Fetch(block_).descriptors.size(), 1u);
    EXPECT_TRUE(WaitFor([&] { return SessionCount() == 1; }));
  }

  void ExpectDropped(const std::string& packet, const std::vector<int>& descriptors = {}) {
    for (const bool after_hello : {false, true}) {
      SessionClient client = Connect();
      if (after_hello) client.Open();
      client.Send(packet, descriptors);
      EXPECT_TRUE(client.IsDropped());
    }
  }

  // Two SCM_RIGHTS of one descriptor each.
  static void SendTwoControlMessages(SessionClient& client, std::string packet, int fd) {
    alignas(cmsghdr) char control[2 * CMSG_SPACE(sizeof(int))] = {};
    iovec part{.iov_base = packet.data(), .iov_len = packet.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof fd);
      std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    ASSERT_EQ(sendmsg(client.socket().get(), &message, MSG_NOSIGNAL),
              static_cast<ssize_t>(packet.size()));
  }

  SessionClient bystander_;
  BlockId block_;
  const UniqueFd file_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
};

TEST_F(BadPacketsTest, GarbageEndsTheSession) {
  ExpectDropped("\xFF\xFF\xFF");
  ExpectDropped(std::string(100, '\0'));
  ExpectDropped("\x0A\x7F");              // A hello that ends too early.
  ExpectDropped("\x12\x02\x08");          // A fetch that does.
  ExpectDropped("\x0A\x03\x0A\xFF\x7F");  // One with a name that does.
}

TEST_F(BadPacketsTest, RandomBytesOpenNoSession) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string packet(1 + random() % 64, '\0');
    for (char& c : packet) c = static_cast<char>(random());
    SessionClient client = Connect();
    client.Send(packet);
    EXPECT_TRUE(client.IsDropped()) << i;
  }
}

TEST_F(BadPacketsTest, ASecondHelloEndsTheSession) {
  SessionClient client = Connect();
  client.Open();
  client.Send(HelloPacket());
  EXPECT_TRUE(client.IsDropped());
}

TEST_F(BadPacketsTest, APacketOfMoreThan4096BytesEndsTheSession) {
  // A hello, then an unknown field that fills the packet.
  const std::string hello = HelloPacket();
  const auto padded = [&](size_t size) {
    const size_t fill = size - hello.size() - 4;
    std::string packet = hello + "\x9A\x06";
    packet += static_cast<char>(0x80 | (fill & 0x7F));
    packet += static_cast<char>(fill >> 7);
    return packet + std::string(fill, 'x');
  };
  SessionClient client = Connect();
  client.Send(padded(4096));
  EXPECT_TRUE(client.Receive().message.has_welcome());
  ExpectDropped(padded(4097));
  ExpectDropped(std::string(100000, 'x'));
}

TEST_F(BadPacketsTest, AnEmptyPacketEndsTheSession) {
  SessionClient client = Connect();
  client.Open();
  ASSERT_EQ(send(client.socket().get(), "", 0, MSG_NOSIGNAL), 0);
  EXPECT_TRUE(client.IsDropped());
}

TEST_F(BadPacketsTest, DescriptorsEndTheSessionAndNoneStaysOpen) {
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 500; ++i) ExpectDropped(HelloPacket(), {file_.get()});
  EXPECT_TRUE(WaitFor([&] { return OwnDescriptors() == before; })) << OwnDescriptors() - before;
}

TEST_F(BadPacketsTest, AsManyDescriptorsAsAPacketHoldsLeaveNoneOpen) {
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 10; ++i) {
    ExpectDropped(HelloPacket(), std::vector<int>(kMaxPacketDescriptors, file_.get()));
  }
  EXPECT_TRUE(WaitFor([&] { return OwnDescriptors() == before; })) << OwnDescriptors() - before;
}

TEST_F(BadPacketsTest, TwoControlMessagesLeaveNoDescriptorOpen) {
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 100; ++i) {
    SessionClient client = Connect();
    client.Open();
    SendTwoControlMessages(client, FetchPacket(BlockId(1)), file_.get());
    EXPECT_TRUE(client.IsDropped());
  }
  EXPECT_TRUE(WaitFor([&] { return OwnDescriptors() == before; })) << OwnDescriptors() - before;
}

TEST_F(BadPacketsTest, DescriptorsSentToNobodyWhoReadsThemAreClosedWithTheSession) {
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 50; ++i) {
    SessionClient client = Connect();
    client.Open();
    client.Send(FetchPacket(BlockId(1)));
    client.Send(FetchPacket(BlockId(1)), {file_.get(), file_.get()});
  }
  EXPECT_TRUE(WaitFor([&] { return OwnDescriptors() == before; })) << OwnDescriptors() - before;
}

TEST_F(BadPacketsTest, AThousandConnectionsThatGoAwayHalfWayLeaveNothing) {
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 1000; ++i) {
    SessionClient client = Connect();
    if (i % 3 == 1) client.Send(HelloPacket());
    if (i % 3 == 2) client.Send(HelloPacket().substr(0, 3));
  }
  EXPECT_TRUE(WaitFor([&] { return OwnDescriptors() == before; })) << OwnDescriptors() - before;
}

}  // namespace
}  // namespace heapbroker

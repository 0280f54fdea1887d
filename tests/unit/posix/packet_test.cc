// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/packet.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

size_t DescriptorCount() { return OpenDescriptorCount(getpid()).value(); }

class PacketTest : public testing::Test {
 protected:
  PacketTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    sender_.Reset(fds[0]);
    receiver_.Reset(fds[1]);
  }

  void Send(absl::string_view bytes, const std::vector<int>& descriptors = {}) {
    const absl::StatusOr<SendResult> sent = SendPacket(sender_, bytes, descriptors);
    ASSERT_TRUE(sent.ok()) << sent.status();
    ASSERT_EQ(*sent, SendResult::kSent);
  }

  ReceivedPacket Receive(size_t max_descriptors) {
    absl::StatusOr<ReceivedPacket> packet =
        ReceivePacket(receiver_, absl::MakeSpan(buffer_), max_descriptors);
    EXPECT_TRUE(packet.ok()) << packet.status();
    return packet.ok() ? *std::move(packet) : ReceivedPacket{};
  }

  // Two SCM_RIGHTS in one message, which SendPacket does not do.
  void SendTwoControlMessages(int fd) {
    alignas(cmsghdr) char control[2 * CMSG_SPACE(sizeof(int))] = {};
    char byte = 'x';
    iovec part{.iov_base = &byte, .iov_len = 1};
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
    ASSERT_EQ(sendmsg(sender_.get(), &message, 0), 1);
  }

  UniqueFd sender_;
  UniqueFd receiver_;
  std::array<char, 64> buffer_{};
  const UniqueFd file_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
};

TEST_F(PacketTest, KeepsPacketsApart) {
  Send("first");
  Send("second one");
  EXPECT_EQ(Receive(0).size, 5u);
  const ReceivedPacket packet = Receive(0);
  EXPECT_EQ(packet.kind, ReceivedPacket::Kind::kMessage);
  EXPECT_EQ(absl::string_view(buffer_.data(), packet.size), "second one");
  EXPECT_FALSE(packet.truncated);
  EXPECT_FALSE(packet.descriptors_lost);
}

TEST_F(PacketTest, NothingThereIsNoError) {
  EXPECT_EQ(Receive(0).kind, ReceivedPacket::Kind::kWouldBlock);
}

TEST_F(PacketTest, TheEndIsToldWhenThePeerCloses) {
  sender_.Reset();
  EXPECT_EQ(Receive(0).kind, ReceivedPacket::Kind::kEnd);
}

TEST_F(PacketTest, SendingToNobodyIsUnavailableAndRaisesNoSignal) {
  receiver_.Reset();
  EXPECT_TRUE(absl::IsUnavailable(SendPacket(sender_, "x").status()));
}

TEST_F(PacketTest, AnEmptyPacketIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(SendPacket(sender_, "").status()));
}

TEST_F(PacketTest, AFullSocketWouldBlock) {
  const std::string bytes(1000, 'x');
  absl::StatusOr<SendResult> sent = SendResult::kSent;
  for (int i = 0; i < 100000 && sent.ok() && *sent == SendResult::kSent; ++i) {
    sent = SendPacket(sender_, bytes);
  }
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(*sent, SendResult::kWouldBlock);
}

TEST_F(PacketTest, SaysThatAPacketWasLargerThanTheBuffer) {
  Send(std::string(buffer_.size(), 'x'));
  EXPECT_FALSE(Receive(0).truncated);
  Send(std::string(buffer_.size() + 1, 'x'));
  const ReceivedPacket packet = Receive(0);
  EXPECT_TRUE(packet.truncated);
  EXPECT_EQ(packet.size, buffer_.size());
}

TEST_F(PacketTest, CarriesDescriptorsWithCloseOnExec) {
  Send("x", {file_.get(), file_.get()});
  const ReceivedPacket packet = Receive(2);
  ASSERT_EQ(packet.descriptors.size(), 2u);
  EXPECT_FALSE(packet.descriptors_lost);
  for (const UniqueFd& fd : packet.descriptors) {
    EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  }
}

TEST_F(PacketTest, CarriesAsManyAsTheKernelAllowsAndNoMore) {
  const size_t before = DescriptorCount();
  Send("x", std::vector<int>(kMaxPacketDescriptors, file_.get()));
  EXPECT_EQ(Receive(kMaxPacketDescriptors).descriptors.size(), kMaxPacketDescriptors);
  EXPECT_EQ(DescriptorCount(), before);
  const std::vector<int> too_many(kMaxPacketDescriptors + 1, file_.get());
  EXPECT_TRUE(absl::IsInvalidArgument(SendPacket(sender_, "x", too_many).status()));
}

TEST_F(PacketTest, ClosesDescriptorsBeyondTheBound) {
  const size_t before = DescriptorCount();
  for (const size_t bound : {1, 2, 3}) {
    Send("x", std::vector<int>(10, file_.get()));
    const ReceivedPacket packet = Receive(bound);
    EXPECT_EQ(packet.descriptors.size(), bound);
    EXPECT_TRUE(packet.descriptors_lost);
  }
  EXPECT_EQ(DescriptorCount(), before);
}

TEST_F(PacketTest, WithoutRoomForDescriptorsNoneIsEverOpened) {
  const size_t before = DescriptorCount();
  for (int i = 0; i < 1000; ++i) {
    Send("x", std::vector<int>(i % 2 == 0 ? 1 : kMaxPacketDescriptors, file_.get()));
    const ReceivedPacket packet = Receive(0);
    EXPECT_EQ(packet.size, 1u);
    EXPECT_TRUE(packet.descriptors_lost);
    EXPECT_TRUE(packet.descriptors.empty());
  }
  EXPECT_EQ(DescriptorCount(), before);
}

TEST_F(PacketTest, TwoControlMessagesInOnePacketLeakNothing) {
  const size_t before = DescriptorCount();
  SendTwoControlMessages(file_.get());
  EXPECT_TRUE(Receive(0).descriptors_lost);
  SendTwoControlMessages(file_.get());
  const ReceivedPacket packet = Receive(1);
  EXPECT_EQ(packet.descriptors.size(), 1u);
  EXPECT_TRUE(packet.descriptors_lost);
  EXPECT_EQ(DescriptorCount(), before + 1);
}

TEST_F(PacketTest, SaysThatTheReceiverIsAtItsDescriptorLimit) {
  Send("x", {file_.get()});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const ReceivedPacket packet = Receive(1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(packet.kind, ReceivedPacket::Kind::kMessage);
  EXPECT_TRUE(packet.descriptors.empty());
  EXPECT_TRUE(packet.descriptors_lost);
  Send("y", {file_.get()});
  EXPECT_EQ(Receive(1).descriptors.size(), 1u);
}

}  // namespace
}  // namespace heapbroker

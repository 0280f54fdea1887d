// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"
#include "tests/unit/session/session_client.h"

namespace heapbroker {
namespace {

constexpr int kMany = 1000;

class FetchTest : public SessionServerTest {
 protected:
  // Lets the server come to rest: it has handled what was sent before this.
  static void Work(SessionClient& client, BlockId block) {
    for (int i = 0; i < 50; ++i) ASSERT_EQ(client.Fetch(block).descriptors.size(), 1u);
  }
};

TEST_F(FetchTest, TheDescriptorIsThatOfTheBlock) {
  SessionClient client = Connect();
  const SessionId session = client.Open();
  const BlockId small = core_.Lease(session, KiB(64));
  const BlockId large = core_.Lease(session, KiB(128));
  const ReceivedReply reply = client.Fetch(large);
  EXPECT_EQ(reply.message.fetched().block_ids(0), large.value());
  ASSERT_EQ(reply.descriptors.size(), 1u);
  EXPECT_EQ(Content(reply.descriptors[0]), absl::StrCat(KiB(128).count()));
  EXPECT_EQ(Content(client.Fetch(small).descriptors.at(0)), absl::StrCat(KiB(64).count()));
}

TEST_F(FetchTest, WithoutALeaseItIsRefusedAndTheSessionGoesOn) {
  SessionClient client = Connect();
  const SessionId session = client.Open();
  EXPECT_EQ(client.Fetch(BlockId(77)).message.refusal().code(),
            static_cast<uint32_t>(absl::StatusCode::kNotFound));
  EXPECT_EQ(client.Fetch(core_.Lease(session)).descriptors.size(), 1u);
}

TEST_F(FetchTest, OneThatReadsNothingHasOneDescriptorUnreadAndHoldsUpNobody) {
  SessionClient slow = Connect();
  const BlockId theirs = core_.Lease(slow.Open("slow"));
  SessionClient quick = Connect();
  const BlockId ours = core_.Lease(quick.Open("quick"));
  slow.Fetch(theirs);
  slow.Send(FetchPacket(theirs));
  ASSERT_TRUE(WaitReadable(slow.socket(), absl::Seconds(10)).ok());
  const int one_reply = slow.UnreadBytes();

  // More than its socket buffer holds: the thread waits until somebody reads.
  std::thread asker([&] {
    for (int i = 1; i < kMany; ++i) slow.Send(FetchPacket(theirs));
  });
  Work(quick, ours);
  EXPECT_EQ(slow.UnreadBytes(), one_reply);
  for (int i = 0; i < kMany; ++i) {
    const ReceivedReply reply = slow.Receive();
    ASSERT_EQ(reply.descriptors.size(), 1u) << i;
    ASSERT_EQ(reply.message.fetched().block_ids(0), theirs.value()) << i;
  }
  asker.join();
  EXPECT_EQ(slow.UnreadBytes(), 0);
}

TEST_F(FetchTest, SeveralDescriptorsComeInOnePacketInTheirOrder) {
  SessionClient client = Connect();
  const SessionId session = client.Open();
  std::vector<BlockId> blocks;
  for (uint64_t i = 0; i < kMaxBlocksPerFetch; ++i) {
    blocks.push_back(core_.Lease(session, KiB(64 * (1 + i))));
  }
  const ReceivedReply reply = client.Fetch(blocks);
  ASSERT_EQ(reply.descriptors.size(), blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(Content(reply.descriptors[i]), absl::StrCat(KiB(64 * (1 + i)).count()));
  }
}

// With room for five unread descriptors.
class FewUnreadTest : public SessionServerTest {
 protected:
  FewUnreadTest() : SessionServerTest({.few_unread_descriptors = 5}) {}

  // A new session that asks for the descriptors of three blocks.
  std::unique_ptr<SessionClient> Ask() {
    auto client = std::make_unique<SessionClient>(path_);
    const SessionId session = client->Open();
    std::vector<BlockId> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(core_.Lease(session));
    client->Send(FetchPacket(blocks));
    EXPECT_TRUE(WaitReadable(client->socket(), absl::Seconds(10)).ok());
    return client;
  }
  static size_t Read(const std::unique_ptr<SessionClient>& client) {
    return client->Receive().descriptors.size();
  }
};

TEST_F(FewUnreadTest, ThereIsRoomForSeveralOnlyWhileFewAreUnread) {
  const auto first = Ask();
  const auto second = Ask();
  const auto third = Ask();
  const auto fourth = Ask();
  EXPECT_EQ(Read(fourth), 1u);
  EXPECT_EQ(Read(third), 1u);
  EXPECT_EQ(Read(second), 2u);
  EXPECT_EQ(Read(first), 3u);
}

TEST_F(FewUnreadTest, WhatWasReadOrWhoseReaderHasGoneMakesRoom) {
  auto first = Ask();
  const auto second = Ask();
  // Nothing tells the daemon that it was read, but it looks.
  EXPECT_EQ(Read(first), 3u);
  EXPECT_TRUE(WaitFor([&] { return Read(Ask()) == 3; }));
  EXPECT_EQ(Read(second), 2u);
  auto gone = Ask();
  gone.reset();
  EXPECT_TRUE(WaitFor([&] { return Read(Ask()) == 3; }));
}

TEST_F(FetchTest, RepliesComeInTheOrderOfTheRequests) {
  SessionClient client = Connect();
  const SessionId session = client.Open();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(core_.Lease(session));
  for (int i = 0; i < 100; ++i) {
    client.Send(FetchPacket(i % 3 == 2 ? BlockId(999999) : blocks[i % 10]));
  }
  for (int i = 0; i < 100; ++i) {
    const ReceivedReply reply = client.Receive();
    ASSERT_EQ(reply.message.has_refusal(), i % 3 == 2) << i;
    if (i % 3 != 2) ASSERT_EQ(reply.message.fetched().block_ids(0), blocks[i % 10].value()) << i;
  }
}

TEST_F(FetchTest, ABlockReleasedBeforeItsTurnIsNotSent) {
  SessionClient slow = Connect();
  const SessionId session = slow.Open();
  const BlockId first = core_.Lease(session);
  const BlockId second = core_.Lease(session);
  slow.Send(FetchPacket(first));
  slow.Send(FetchPacket(second));
  ASSERT_TRUE(WaitReadable(slow.socket(), absl::Seconds(10)).ok());
  ASSERT_TRUE(core_.broker.Release(session, {second}).ok());
  EXPECT_EQ(slow.Receive().descriptors.size(), 1u);
  EXPECT_TRUE(slow.Receive().message.has_refusal());
}

TEST_F(FetchTest, TheEndOfOneThatReadsNothingIsNoticed) {
  {
    SessionClient slow = Connect();
    const BlockId block = core_.Lease(slow.Open());
    for (int i = 0; i < 10; ++i) slow.Send(FetchPacket(block));
    ASSERT_TRUE(WaitReadable(slow.socket(), absl::Seconds(10)).ok());
    EXPECT_EQ(SessionCount(), 1u);
  }
  EXPECT_TRUE(WaitFor([&] { return SessionCount() == 0 && core_.live_allocations() == 0; }));
}

TEST_F(FetchTest, WaitingForOneThatReadsNothingCostsNoTime) {
  SessionClient slow = Connect();
  const BlockId theirs = core_.Lease(slow.Open());
  for (int i = 0; i < 10; ++i) slow.Send(FetchPacket(theirs));
  SessionClient quiet = Connect();
  Work(quiet, core_.Lease(quiet.Open()));
  rusage before;
  rusage after;
  ASSERT_EQ(getrusage(RUSAGE_SELF, &before), 0);
  EXPECT_FALSE(WaitReadable(quiet.socket(), absl::Milliseconds(300)).ok());
  ASSERT_EQ(getrusage(RUSAGE_SELF, &after), 0);
  // This thread waits, too; the sanitizers' own threads may wake now and then.
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 10);
  EXPECT_EQ(slow.Receive().descriptors.size(), 1u);
}

TEST_F(FetchTest, DescriptorsOfManyFetchesStayWithinBounds) {
  SessionClient client = Connect();
  const SessionId session = client.Open();
  client.Fetch(core_.Lease(session));
  const size_t before = OwnDescriptors();
  for (int i = 0; i < 2000; ++i) {
    const BlockId block = core_.Lease(session);
    ASSERT_EQ(client.Fetch(block).descriptors.size(), 1u);
    ASSERT_TRUE(core_.broker.Release(session, {block}).ok());
  }
  // One for the block that is idle in the pool.
  EXPECT_LE(OwnDescriptors(), before + 1);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/conversation.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/unit/session/session_client.h"
#include "tests/unit/session/test_core.h"

namespace heapbroker {
namespace {

constexpr PeerCredentials kPeer{.uid = 1000, .gid = 1001, .pid = 4242};

v1::SessionReply Parse(const Answer& answer) {
  v1::SessionReply reply;
  EXPECT_FALSE(answer.packet.empty());
  EXPECT_TRUE(reply.ParseFromString(answer.packet));
  return reply;
}

SessionToken TokenOf(const v1::SessionReply& reply) {
  SessionToken token{};
  const std::string& bytes = reply.welcome().token();
  EXPECT_EQ(bytes.size(), token.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), token.size()), token.begin());
  return token;
}

absl::StatusCode CodeOf(const v1::SessionReply& reply) {
  EXPECT_TRUE(reply.has_refusal()) << reply.ShortDebugString();
  return static_cast<absl::StatusCode>(reply.refusal().code());
}

class ConversationTest : public testing::Test {
 protected:
  explicit ConversationTest(TenantRule tenants = TenantRule::kAnyTenant,
                            SessionCountLimits limits = {})
      : core_(tenants), gate_(core_.sessions, {&core_.broker}, limits) {
    limits_.set_max_name_bytes(128);
  }

  Conversation Begin(PeerCredentials peer = kPeer) { return Conversation(gate_, limits_, peer); }
  size_t SessionCount() const {
    return core_.sessions.Count().clients + core_.sessions.Count().observers;
  }

  // A hello that is refused, ends the conversation and leaves no session behind.
  v1::SessionReply RefusedHello(const std::string& packet, PeerCredentials peer = kPeer) {
    const size_t before = SessionCount();
    Conversation conversation = Begin(peer);
    const Answer answer = conversation.Handle(packet);
    EXPECT_TRUE(answer.ends.has_value());
    EXPECT_EQ(conversation.open(), nullptr);
    EXPECT_EQ(SessionCount(), before);
    return Parse(answer);
  }

  TestCore core_;
  SessionGate gate_;
  v1::SessionLimits limits_;
};

TEST_F(ConversationTest, AHelloIsWelcomedWithTokenDevicesAndLimits) {
  Conversation conversation = Begin();
  const Answer answer = conversation.Handle(HelloPacket("classifier"));
  EXPECT_FALSE(answer.ends.has_value());
  EXPECT_TRUE(answer.exported.empty());
  const v1::SessionReply reply = Parse(answer);
  ASSERT_TRUE(reply.has_welcome());
  EXPECT_EQ(reply.welcome().protocol_major(), kProtocolMajor);
  EXPECT_EQ(reply.welcome().limits().max_name_bytes(), 128u);
  ASSERT_EQ(reply.welcome().devices_size(), 1);
  EXPECT_EQ(reply.welcome().devices(0).name(), core_.device.info().name);

  const absl::StatusOr<Session> session = core_.sessions.Find(TokenOf(reply));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->id.value(), reply.welcome().session_id());
  EXPECT_EQ(session->identity.name, "classifier");
}

TEST_F(ConversationTest, IdentityIsWhatTheKernelSays) {
  Conversation conversation = Begin();
  const v1::SessionReply reply = Parse(conversation.Handle(HelloPacket()));
  const SessionIdentity identity = core_.sessions.Find(TokenOf(reply))->identity;
  EXPECT_EQ(identity.uid, 1000u);
  EXPECT_EQ(identity.gid, 1001u);
  EXPECT_EQ(identity.pid, 4242);
}

TEST_F(ConversationTest, TheTokenWorksOnEveryDeviceBeforeItIsKnown) {
  Conversation conversation = Begin();
  const v1::SessionReply reply = Parse(conversation.Handle(HelloPacket()));
  EXPECT_NE(core_.Lease(SessionId(reply.welcome().session_id())), BlockId());
}

TEST_F(ConversationTest, NoTwoSessionsHaveTheSameToken) {
  std::set<SessionToken> tokens;
  std::vector<std::unique_ptr<Conversation>> conversations;
  for (int i = 0; i < 100; ++i) {
    conversations.push_back(std::make_unique<Conversation>(Begin()));
    tokens.insert(TokenOf(Parse(conversations.back()->Handle(HelloPacket()))));
  }
  EXPECT_EQ(tokens.size(), 100u);
}

TEST_F(ConversationTest, AnotherMajorVersionIsRefusedNamingBoth) {
  v1::SessionRequest request;
  request.mutable_hello()->set_protocol_major(2);
  request.mutable_hello()->set_protocol_minor(7);
  request.mutable_hello()->set_name("from the future");
  const v1::SessionReply reply = RefusedHello(request.SerializeAsString());
  EXPECT_EQ(CodeOf(reply), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(reply.refusal().message(), "2.7")) << reply.refusal().message();
  EXPECT_TRUE(absl::StrContains(reply.refusal().message(), "1.0")) << reply.refusal().message();
}

TEST_F(ConversationTest, AClientThatNamesNoVersionIsRefused) {
  v1::SessionRequest request;
  request.mutable_hello()->set_name("x");
  EXPECT_EQ(CodeOf(RefusedHello(request.SerializeAsString())),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ConversationTest, ANewerMinorVersionIsWelcome) {
  v1::SessionRequest request;
  ASSERT_TRUE(request.ParseFromString(HelloPacket()));
  request.mutable_hello()->set_protocol_minor(9);
  Conversation conversation = Begin();
  EXPECT_TRUE(Parse(conversation.Handle(request.SerializeAsString())).has_welcome());
}

TEST_F(ConversationTest, ANameOf129BytesIsRefusedNamingTheField) {
  const v1::SessionReply reply = RefusedHello(HelloPacket(std::string(129, 'x')));
  EXPECT_EQ(CodeOf(reply), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(reply.refusal().message(), "hello.name: "))
      << reply.refusal().message();
  EXPECT_TRUE(absl::StrContains(reply.refusal().message(), "128")) << reply.refusal().message();
  Conversation conversation = Begin();
  EXPECT_TRUE(Parse(conversation.Handle(HelloPacket(std::string(128, 'x')))).has_welcome());
}

TEST_F(ConversationTest, ANameThatIsNotUtf8IsRefusedNamingTheField) {
  // Written by hand, since protobuf does not write such strings quietly.
  const std::string packet(
      "\x0A\x08\x08\x01\x1A\x04"
      "ab\xFF"
      "c",
      10);
  const v1::SessionReply reply = RefusedHello(packet);
  EXPECT_EQ(CodeOf(reply), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(reply.refusal().message(), "hello.name: "))
      << reply.refusal().message();
}

TEST_F(ConversationTest, EmptyNamesAndControlCharactersAreRefused) {
  EXPECT_EQ(CodeOf(RefusedHello(HelloPacket(""))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(RefusedHello(HelloPacket("a\nb"))), absl::StatusCode::kInvalidArgument);
}

TEST_F(ConversationTest, ASecondHelloEndsTheSession) {
  Conversation conversation = Begin();
  ASSERT_TRUE(Parse(conversation.Handle(HelloPacket())).has_welcome());
  const Answer answer = conversation.Handle(HelloPacket());
  EXPECT_TRUE(answer.ends.has_value());
  EXPECT_EQ(CodeOf(Parse(answer)), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ConversationTest, AFetchBeforeTheHelloEndsTheConversation) {
  EXPECT_EQ(CodeOf(RefusedHello(FetchPacket(BlockId(1)))), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ConversationTest, GarbageEndsTheConversationBeforeAndAfterTheHello) {
  for (const std::string garbage : {"\xFF", "garbage", "\x0A\x7F", "\x0B\x0B\x0B"}) {
    EXPECT_EQ(CodeOf(RefusedHello(garbage)), absl::StatusCode::kInvalidArgument);
    Conversation conversation = Begin();
    ASSERT_TRUE(Parse(conversation.Handle(HelloPacket())).has_welcome());
    EXPECT_TRUE(conversation.Handle(garbage).ends.has_value());
  }
}

TEST_F(ConversationTest, ARequestOfANewerMinorVersionIsUnimplementedAndHarmless) {
  const std::string unknown("\x9A\x06\x00", 3);  // Field 99, an empty message.
  EXPECT_EQ(CodeOf(RefusedHello(unknown)), absl::StatusCode::kFailedPrecondition);
  Conversation conversation = Begin();
  ASSERT_TRUE(Parse(conversation.Handle(HelloPacket())).has_welcome());
  const Answer answer = conversation.Handle(unknown);
  EXPECT_FALSE(answer.ends.has_value());
  EXPECT_EQ(CodeOf(Parse(answer)), absl::StatusCode::kUnimplemented);
}

TEST_F(ConversationTest, ALeasedBlockIsFetchedWithItsDescriptor) {
  Conversation conversation = Begin();
  const v1::SessionReply welcome = Parse(conversation.Handle(HelloPacket()));
  const BlockId block = core_.Lease(SessionId(welcome.welcome().session_id()));
  const Answer answer = conversation.Handle(FetchPacket(block));
  EXPECT_FALSE(answer.ends.has_value());
  ASSERT_EQ(answer.exported.size(), 1u);
  EXPECT_GE(answer.exported[0]->fd(), 0);
  EXPECT_EQ(Parse(answer).fetched().block_ids(0), block.value());
}

TEST_F(ConversationTest, SeveralBlocksAreFetchedAtOnceInTheirOrder) {
  Conversation conversation = Begin();
  const SessionId session(Parse(conversation.Handle(HelloPacket())).welcome().session_id());
  std::vector<BlockId> blocks;
  for (uint32_t i = 0; i < kMaxBlocksPerFetch; ++i) blocks.push_back(core_.Lease(session));
  std::swap(blocks[0], blocks[5]);
  const std::string packet = FetchPacket(blocks);
  for (const size_t most : {size_t{kMaxBlocksPerFetch}, size_t{3}, size_t{1}}) {
    const Answer answer = conversation.Handle(packet, most);
    ASSERT_EQ(answer.exported.size(), most);
    const v1::SessionReply reply = Parse(answer);
    ASSERT_EQ(static_cast<size_t>(reply.fetched().block_ids_size()), most);
    for (size_t i = 0; i < most; ++i) {
      EXPECT_EQ(reply.fetched().block_ids(static_cast<int>(i)), blocks[i].value());
      EXPECT_EQ(answer.exported[i], core_.broker.Fetch(session, blocks[i]).value().exported);
    }
  }
}

TEST_F(ConversationTest, OneBlockThatItMayNotHaveRefusesAll) {
  Conversation conversation = Begin();
  const SessionId session(Parse(conversation.Handle(HelloPacket())).welcome().session_id());
  const Answer answer =
      conversation.Handle(FetchPacket({core_.Lease(session), BlockId(77), core_.Lease(session)}));
  EXPECT_TRUE(answer.exported.empty());
  EXPECT_FALSE(answer.ends.has_value());
  EXPECT_EQ(CodeOf(Parse(answer)), absl::StatusCode::kNotFound);
  EXPECT_THAT(Parse(answer).refusal().message(), testing::HasSubstr("77"));
}

TEST_F(ConversationTest, AFetchOfNoneOrOfTooManyIsRefused) {
  Conversation conversation = Begin();
  const SessionId session(Parse(conversation.Handle(HelloPacket())).welcome().session_id());
  const BlockId block = core_.Lease(session);
  for (const size_t count : {size_t{0}, size_t{kMaxBlocksPerFetch + 1}, size_t{400}}) {
    const Answer answer = conversation.Handle(FetchPacket(std::vector<BlockId>(count, block)));
    EXPECT_TRUE(answer.exported.empty());
    EXPECT_FALSE(answer.ends.has_value());
    EXPECT_EQ(CodeOf(Parse(answer)), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Parse(answer).refusal().message(), testing::HasSubstr("allowed are 1 to 16"));
  }
}

TEST_F(ConversationTest, AnotherSessionsBlockIsAnsweredAsAnUnknownOne) {
  Conversation owner = Begin();
  const v1::SessionReply welcome = Parse(owner.Handle(HelloPacket()));
  const BlockId block = core_.Lease(SessionId(welcome.welcome().session_id()));
  const BlockId unknown(987654);

  Conversation other = Begin();
  ASSERT_TRUE(Parse(other.Handle(HelloPacket())).has_welcome());
  v1::SessionReply theirs = Parse(other.Handle(FetchPacket(block)));
  const v1::SessionReply nobodys = Parse(other.Handle(FetchPacket(unknown)));
  EXPECT_EQ(CodeOf(theirs), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf(nobodys), absl::StatusCode::kNotFound);
  EXPECT_EQ(
      absl::StrReplaceAll(theirs.refusal().message(), {{std::to_string(block.value()), "987654"}}),
      nobodys.refusal().message());
}

TEST_F(ConversationTest, ABlockThatWasReleasedCanNoLongerBeFetched) {
  Conversation conversation = Begin();
  const SessionId session(Parse(conversation.Handle(HelloPacket())).welcome().session_id());
  const BlockId block = core_.Lease(session);
  ASSERT_TRUE(core_.broker.Release(session, {block}).ok());
  const Answer answer = conversation.Handle(FetchPacket(block));
  EXPECT_FALSE(answer.ends.has_value());
  EXPECT_EQ(CodeOf(Parse(answer)), absl::StatusCode::kNotFound);
}

TEST_F(ConversationTest, AnObserverIsKnownToNoDevice) {
  Conversation conversation = Begin();
  const v1::SessionReply reply = Parse(conversation.Handle(HelloPacket("ctl", true)));
  ASSERT_TRUE(reply.has_welcome());
  EXPECT_EQ(core_.sessions.Count().observers, 1u);
  EXPECT_TRUE(core_.sessions.Find(TokenOf(reply)).ok());
  const SessionId session(reply.welcome().session_id());
  const BlockRequest request{.size = KiB(64), .alignment = Bytes()};
  EXPECT_TRUE(absl::IsUnauthenticated(
      core_.broker.Allocate(session, CallId(1), {.blocks = {request}}).status()));
  EXPECT_EQ(CodeOf(Parse(conversation.Handle(FetchPacket(BlockId(1))))),
            absl::StatusCode::kNotFound);
}

TEST_F(ConversationTest, ItsEndEndsTheTokenAndGivesEverythingBack) {
  SessionToken token;
  {
    Conversation conversation = Begin();
    const v1::SessionReply reply = Parse(conversation.Handle(HelloPacket()));
    token = TokenOf(reply);
    core_.Lease(SessionId(reply.welcome().session_id()));
    EXPECT_EQ(core_.live_allocations(), 1u);
  }
  EXPECT_TRUE(absl::IsUnauthenticated(core_.sessions.Find(token).status()));
  EXPECT_EQ(core_.live_allocations(), 0u);
}

class OneTenantConversationTest : public ConversationTest {
 protected:
  OneTenantConversationTest() : ConversationTest(TenantRule::kFirstTenantOnly) {}
};

TEST_F(OneTenantConversationTest, ADeviceThatRefusesTheTenantRefusesTheHello) {
  Conversation first = Begin();
  ASSERT_TRUE(Parse(first.Handle(HelloPacket())).has_welcome());
  const v1::SessionReply reply =
      RefusedHello(HelloPacket(), PeerCredentials{.uid = 2000, .gid = 2000, .pid = 1});
  EXPECT_EQ(CodeOf(reply), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(reply.refusal().message().empty());
}

TEST_F(OneTenantConversationTest, AnObserverOfAnotherUserMayLook) {
  Conversation first = Begin();
  ASSERT_TRUE(Parse(first.Handle(HelloPacket())).has_welcome());
  Conversation second = Begin(PeerCredentials{.uid = 2000, .gid = 2000, .pid = 1});
  EXPECT_TRUE(Parse(second.Handle(HelloPacket("ctl", true))).has_welcome());
}

class TwoSessionsConversationTest : public ConversationTest {
 protected:
  TwoSessionsConversationTest()
      : ConversationTest(TenantRule::kAnyTenant,
                         {.clients = 2, .observers = 1, .reserved = 1, .administrators = {500}}) {}
};

TEST_F(TwoSessionsConversationTest, OneMoreIsRefusedUntilOneEnds) {
  Conversation first = Begin();
  ASSERT_TRUE(Parse(first.Handle(HelloPacket())).has_welcome());
  {
    Conversation second = Begin();
    ASSERT_TRUE(Parse(second.Handle(HelloPacket())).has_welcome());
    const v1::SessionReply reply = RefusedHello(HelloPacket());
    EXPECT_EQ(CodeOf(reply), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(absl::StrContains(reply.refusal().message(), "2 of 2"))
        << reply.refusal().message();
  }
  Conversation third = Begin();
  EXPECT_TRUE(Parse(third.Handle(HelloPacket())).has_welcome());
}

TEST_F(TwoSessionsConversationTest, ObserversAreCountedApart) {
  Conversation first = Begin();
  Conversation second = Begin();
  ASSERT_TRUE(Parse(first.Handle(HelloPacket())).has_welcome());
  ASSERT_TRUE(Parse(second.Handle(HelloPacket())).has_welcome());
  Conversation observer = Begin();
  EXPECT_TRUE(Parse(observer.Handle(HelloPacket("ctl", true))).has_welcome());
  EXPECT_EQ(CodeOf(RefusedHello(HelloPacket("ctl", true))), absl::StatusCode::kResourceExhausted);
}

TEST_F(TwoSessionsConversationTest, AFewMoreAreTheAdministrators) {
  Conversation first = Begin(), second = Begin(), observer = Begin();
  ASSERT_TRUE(Parse(first.Handle(HelloPacket())).has_welcome());
  ASSERT_TRUE(Parse(second.Handle(HelloPacket())).has_welcome());
  ASSERT_TRUE(Parse(observer.Handle(HelloPacket("ctl", true))).has_welcome());
  constexpr PeerCredentials kRoot{.uid = 0, .gid = 0, .pid = 1};
  constexpr PeerCredentials kDaemonsUser{.uid = 500, .gid = 500, .pid = 1};
  for (const bool observes : {false, true}) {
    for (const PeerCredentials& peer : {kRoot, kDaemonsUser}) {
      Conversation administrator = Begin(peer);
      EXPECT_TRUE(Parse(administrator.Handle(HelloPacket("ctl", observes))).has_welcome());
      EXPECT_EQ(CodeOf(RefusedHello(HelloPacket("ctl", observes))),
                absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(CodeOf(RefusedHello(HelloPacket("ctl", observes), kRoot)),
                absl::StatusCode::kResourceExhausted);
    }
  }
}

// Two devices, the first of which serves one tenant only.
class TwoDevicesConversationTest : public testing::Test {
 protected:
  static constexpr PeerCredentials kOther{.uid = 2000, .gid = 2000, .pid = 1};

  Conversation Begin(PeerCredentials peer) { return Conversation(gate_, limits_, peer); }

  TestCore core_{TenantRule::kFirstTenantOnly};
  SessionGate gate_{core_.sessions, {&core_.broker, &core_.second_broker}, {}};
  v1::SessionLimits limits_;
};

TEST_F(TwoDevicesConversationTest, TheWelcomeListsTheDevicesThatServeTheSessionByTheirIndex) {
  Conversation first = Begin(kPeer);
  const v1::Welcome welcome = Parse(first.Handle(HelloPacket())).welcome();
  ASSERT_EQ(welcome.devices_size(), 2);
  EXPECT_EQ(welcome.devices(0).index(), 0u);
  EXPECT_EQ(welcome.devices(1).index(), 1u);
  Conversation second = Begin(kOther);
  const v1::Welcome others = Parse(second.Handle(HelloPacket())).welcome();
  ASSERT_EQ(others.devices_size(), 1);
  EXPECT_EQ(others.devices(0).index(), 1u);
  EXPECT_EQ(others.devices(0).name(), "second device");
  Conversation observer = Begin(kOther);
  EXPECT_EQ(Parse(observer.Handle(HelloPacket("ctl", true))).welcome().devices_size(), 2);
}

TEST_F(TwoDevicesConversationTest, ADeviceThatRefusesTheTenantGivesItNothing) {
  Conversation first = Begin(kPeer);
  ASSERT_TRUE(Parse(first.Handle(HelloPacket())).has_welcome());
  Conversation second = Begin(kOther);
  const SessionId session(Parse(second.Handle(HelloPacket())).welcome().session_id());
  const BlockRequest request{.size = KiB(64), .alignment = Bytes()};
  EXPECT_TRUE(absl::IsUnauthenticated(
      core_.broker.Allocate(session, CallId(1), {.blocks = {request}}).status()));
  EXPECT_NE(core_.Lease(core_.second_broker, session, KiB(64)), BlockId());
}

TEST_F(TwoDevicesConversationTest, ABlockIsFetchedFromTheDeviceThatItIsOn) {
  Conversation conversation = Begin(kPeer);
  const SessionId session(Parse(conversation.Handle(HelloPacket())).welcome().session_id());
  const BlockId first = core_.Lease(core_.broker, session, KiB(64));
  const BlockId second = core_.Lease(core_.second_broker, session, KiB(64));
  EXPECT_NE(first, second);
  for (const BlockId block : {first, second}) {
    const Answer answer = conversation.Handle(FetchPacket(block));
    EXPECT_EQ(Parse(answer).fetched().block_ids(0), block.value());
    EXPECT_EQ(answer.exported.size(), 1u);
  }
  // Of no device, and of one where it holds nothing.
  for (const uint64_t unknown : {second.value() + 1, second.value() + kMaxDevices}) {
    EXPECT_EQ(CodeOf(Parse(conversation.Handle(FetchPacket(BlockId(unknown))))),
              absl::StatusCode::kNotFound);
  }
}

TEST_F(TwoDevicesConversationTest, ItsEndGivesBackWhatItHadOfEachDevice) {
  {
    Conversation conversation = Begin(kPeer);
    const SessionId session(Parse(conversation.Handle(HelloPacket())).welcome().session_id());
    core_.Lease(core_.broker, session, KiB(64));
    core_.Lease(core_.second_broker, session, KiB(64));
  }
  EXPECT_EQ(core_.device.counts().live, 0u);
  EXPECT_EQ(core_.second_device.counts().live, 0u);
}

}  // namespace
}  // namespace heapbroker

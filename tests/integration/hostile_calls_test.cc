// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Bad requests over broker.sock: each gets a status that says what is wrong, and
// changes nothing.
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/grpc/status.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/integration/hostile_fixture.h"

namespace heapbroker {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
constexpr uint64_t kTwo63 = uint64_t{1} << 63;
constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

class HostileCallsTest : public HostileFixture {
 protected:
  // An Allocate with this token, or none where it is empty.
  absl::Status AllocateWithToken(const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) Prepare(context, token);
    v1::AllocateRequest request;
    request.add_blocks()->set_size(65536);
    v1::AllocateResponse response;
    return FromGrpcStatus(
        v1::MemoryBroker::NewStub(channel_)->Allocate(&context, request, &response));
  }

  // OpenSegment with a request of exactly these bytes.
  absl::Status OpenSegmentRaw(const RawSession& session, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    Prepare(context, session.token());
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    const auto call =
        stub.PrepareUnaryCall(&context, "/heapbroker.v1.MemoryBroker/OpenSegment", request, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return FromGrpcStatus(status);
  }
};

TEST_F(HostileCallsTest, SizesThatNoBlockCanHaveAreRefused) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  for (uint64_t size : {uint64_t{0}, kTwo63 - 1, kTwo63, kTwo63 + 1, kMax - 512, kMax - 1, kMax}) {
    EXPECT_THAT(session.Allocate(size), StatusIs(kInvalid, "blocks[0].size: ")) << size;
    EXPECT_THAT(session.OpenSegment("s", size), StatusIs(kInvalid, "size: ")) << size;
  }
}

TEST_F(HostileCallsTest, AlignmentsThatAreNoPowersOfTwoAreRefused) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  for (uint64_t alignment : {uint64_t{3}, uint64_t{48}, uint64_t{1} << 31, kTwo63, kMax}) {
    EXPECT_THAT(session.Allocate(65536, alignment), StatusIs(kInvalid, "blocks[0].alignment: "))
        << alignment;
  }
}

TEST_F(HostileCallsTest, AnothersBlockIsAnsweredAsAnUnknownOne) {
  ASSERT_OK_AND_ASSIGN(RawSession owner, OpenSession());
  ASSERT_OK_AND_ASSIGN(RawSession other, OpenSession());
  ASSERT_OK_AND_ASSIGN(const v1::Block block, owner.Allocate(65536));
  const std::string id = absl::StrCat(block.block_id());
  // As many digits, so that nothing else can differ.
  std::string unknown = id;
  unknown[0] = '8';
  ASSERT_NE(unknown, id);

  const absl::Status released = other.Release(block.block_id());
  EXPECT_EQ(released.code(), absl::StatusCode::kNotFound);
  uint64_t unknown_id = 0;
  ASSERT_TRUE(absl::SimpleAtoi(unknown, &unknown_id));
  EXPECT_EQ(absl::StrReplaceAll(other.Release(unknown_id).ToString(), {{unknown, id}}),
            released.ToString());

  const absl::Status fetched = other.Fetch(block.block_id()).status();
  EXPECT_EQ(fetched.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(absl::StrReplaceAll(other.Fetch(unknown_id).status().ToString(), {{unknown, id}}),
            fetched.ToString());
  // And it is still its owner's.
  EXPECT_THAT(owner.Fetch(block.block_id()), IsOk());
  EXPECT_EQ(Held().leased_blocks, 1u);
}

TEST_F(HostileCallsTest, CallsNeedTheTokenOfAnOpenSession) {
  constexpr char kKey[] = "heapbroker-session-bin";
  EXPECT_THAT(AllocateWithToken(""), StatusIs(kUnauthenticated, kKey));
  EXPECT_THAT(AllocateWithToken("short"), StatusIs(kUnauthenticated, kKey));
  EXPECT_THAT(AllocateWithToken(std::string(16, 'x')), StatusIs(kUnauthenticated, kKey));
  std::string ended;
  {
    ASSERT_OK_AND_ASSIGN(const RawSession session, OpenSession());
    ended = session.token();
    ASSERT_EQ(Held().client_sessions, 1u);
  }
  ASSERT_TRUE(WaitFor([&] { return Held().client_sessions == 0; }));
  EXPECT_THAT(AllocateWithToken(ended), StatusIs(kUnauthenticated, kKey));
}

TEST_F(HostileCallsTest, SegmentNamesThatAreTooLongOrNoTextAreRefused) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  EXPECT_THAT(session.OpenSegment(std::string(129, 'n'), 65536), StatusIs(kInvalid, "128"));
  EXPECT_THAT(session.OpenSegment("", 65536), StatusIs(kInvalid, "name"));
  EXPECT_THAT(session.OpenSegment("two\nlines", 65536), StatusIs(kInvalid, "name"));
  // OpenSegmentRequest.name is field 1, with four bytes here.
  EXPECT_THAT(OpenSegmentRaw(session,
                             "\x0a\x04"
                             "ab\xff"
                             "c"),
              StatusIs(kInvalid, "UTF-8"));
}

TEST_F(HostileCallsTest, RequestsThatAreNoMessagesAreRefused) {
  ASSERT_OK_AND_ASSIGN(RawSession session, OpenSession());
  // A length that is not there; a tag of nothing; more than a request may have.
  EXPECT_THAT(OpenSegmentRaw(session, "\x0a\x7f"), StatusIs(kInvalid, "OpenSegmentRequest"));
  EXPECT_THAT(OpenSegmentRaw(session, "\xff\xff\xff"), StatusIs(kInvalid, "OpenSegmentRequest"));
  EXPECT_THAT(OpenSegmentRaw(session, std::string(8 << 20, '\x0a')),
              StatusIs(absl::StatusCode::kResourceExhausted, ""));
}

}  // namespace
}  // namespace heapbroker

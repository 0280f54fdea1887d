// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a hostile or mistaken client gets: a status that says what was wrong, and
// nothing changed.
#include <sys/socket.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/posix/unix_socket.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class BadInputTest : public ServerFixture {
 protected:
  grpc::Status Allocate(CallContext& context, uint64_t size, uint64_t alignment = 0) {
    v1::AllocateRequest request;
    request.add_blocks()->set_size(size);
    request.mutable_blocks(0)->set_alignment(alignment);
    v1::AllocateResponse response;
    return memory_->Allocate(context.get(), request, &response);
  }
  grpc::Status OpenSegment(const TestSession& session, const v1::OpenSegmentRequest& request) {
    v1::OpenSegmentResponse response;
    CallContext context(session);
    return memory_->OpenSegment(context.get(), request, &response);
  }

  // Sends `bytes` as the request of `method`, whatever they are.
  grpc::Status SendRaw(const TestSession& session, const std::string& method,
                       const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    CallContext context(session);
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto call =
        stub.PrepareUnaryCall(context.get(), method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }

  const TestSession session_ = OpenClient();
};

TEST_F(BadInputTest, RefusesSizesThatNoBlockCanHave) {
  const uint64_t two63 = uint64_t{1} << 63;
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  for (uint64_t size : {uint64_t{0}, two63 - 1, two63, two63 + 1, max - 512, max - 1, max}) {
    CallContext context(session_);
    const grpc::Status status = Allocate(context, size);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << size;
    EXPECT_THAT(status.error_message(), StartsWith("blocks[0].size: ")) << size;
  }
  EXPECT_TRUE(NothingHeld(session_));
  EXPECT_EQ(device_.counts().allocations, 0u);
}

TEST_F(BadInputTest, RefusesSegmentSizesThatNoSegmentCanHave) {
  const uint64_t two63 = uint64_t{1} << 63;
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  for (uint64_t size : {uint64_t{0}, two63 - 1, two63, max - 512, max}) {
    const grpc::Status status = OpenSegment(session_, CreateRequest("weights", size));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << size;
    EXPECT_THAT(status.error_message(), StartsWith("size: ")) << size;
  }
  EXPECT_TRUE(NothingHeld(session_));
}

TEST_F(BadInputTest, RefusesAlignmentsThatAreNoPowersOfTwoOrTooLarge) {
  for (uint64_t alignment : {uint64_t{3}, uint64_t{48}, uint64_t{8192}, uint64_t{1} << 31,
                             uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    CallContext context(session_);
    const grpc::Status status = Allocate(context, 1, alignment);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << alignment;
    EXPECT_THAT(status.error_message(), StartsWith("blocks[0].alignment: ")) << alignment;
  }
  EXPECT_TRUE(NothingHeld(session_));
}

TEST_F(BadInputTest, RefusesNoBlockAndTooMany) {
  v1::AllocateRequest request;
  v1::AllocateResponse response;
  CallContext none(session_);
  grpc::Status status = memory_->Allocate(none.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  for (size_t i = 0; i < kMaxBlocksPerCall + 1; ++i) request.add_blocks()->set_size(1);
  CallContext many(session_);
  status = memory_->Allocate(many.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("256"));
  EXPECT_TRUE(NothingHeld(session_));
}

TEST_F(BadInputTest, AnswersTheSameForAnothersBlockAsForAnUnknownOne) {
  const TestSession other = OpenClient();
  const uint64_t others = AllocateOne(other, 1).block_id();
  const uint64_t unknown = others + kMaxDevices;  // The same device's.
  grpc::Status of_others = Release(session_, {others});
  grpc::Status of_unknown = Release(session_, {unknown});
  EXPECT_EQ(of_others.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(of_unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  std::string expected = of_unknown.error_message();
  expected.replace(expected.find(std::to_string(unknown)), std::to_string(unknown).size(),
                   std::to_string(others));
  EXPECT_EQ(of_others.error_message(), expected);
  EXPECT_EQ(broker_.Holdings(other.session.id).leased_blocks, 1u);
}

TEST_F(BadInputTest, ReleasesAllOrNothing) {
  const uint64_t mine = AllocateOne(session_, 1).block_id();
  EXPECT_EQ(Release(session_, {mine, mine + kMaxDevices}).error_code(),
            grpc::StatusCode::NOT_FOUND);
  // On a device that this daemon does not have.
  EXPECT_EQ(Release(session_, {mine, mine + 1}).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Release(session_, {mine, mine}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Release(session_, {mine, 0}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Release(session_, std::vector<uint64_t>{}).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(broker_.Holdings(session_.session.id).leased_blocks, 1u);
  EXPECT_TRUE(Release(session_, {mine}).ok());
  EXPECT_EQ(Release(session_, {mine}).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(BadInputTest, RefusesCallsWithoutASession) {
  CallContext context;
  const grpc::Status status = Allocate(context, 1);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("heapbroker-session-bin"));
}

TEST_F(BadInputTest, RefusesTokensOfTheWrongLength) {
  for (size_t length : {0, 1, 15, 17, 4000}) {
    CallContext context;
    context.WithToken(std::string(length, 'x'));
    const grpc::Status status = Allocate(context, 1);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << length;
    EXPECT_THAT(status.error_message(), HasSubstr("16")) << length;
  }
}

TEST_F(BadInputTest, RefusesTwoTokensAtOnce) {
  CallContext context(session_);
  context.WithToken(OpenClient().token);
  EXPECT_EQ(Allocate(context, 1).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(BadInputTest, RefusesUnknownAndEndedTokens) {
  CallContext unknown;
  unknown.WithToken(std::string(16, 'x'));
  EXPECT_EQ(Allocate(unknown, 1).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  End(session_);
  CallContext ended(session_);
  EXPECT_EQ(Allocate(ended, 1).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// Who is asked before what: 64 KiB of anything are not looked at for nobody.
TEST_F(BadInputTest, LooksAtNothingOfACallThatNeedsASessionAndHasNone) {
  End(session_);
  for (const char* method :
       {"Allocate", "Release", "OpenSegment", "SealSegment", "CloseSegment", "Watch"}) {
    const grpc::Status status =
        SendRaw(session_, absl::StrCat("/heapbroker.v1.MemoryBroker/", method), "\x0a\xff garbage");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
}

TEST_F(BadInputTest, GivesObserversNothing) {
  CallContext context(OpenObserver());
  EXPECT_EQ(Allocate(context, 1).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(BadInputTest, RefusesNamesThatAreNone) {
  const std::vector<std::string> names = {"", std::string(129, 'x'), "two\nlines",
                                          std::string("a\0b", 3)};
  for (const std::string& name : names) {
    const grpc::Status status = OpenSegment(session_, CreateRequest(name));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(status.error_message(), StartsWith("name: ")) << name;
  }
  EXPECT_TRUE(OpenSegment(session_, CreateRequest(std::string(128, 'x'))).ok());
}

TEST_F(BadInputTest, NamesTheFieldThatIsNotUtf8) {
  // OpenSegmentRequest.name is field 1.
  const std::string bytes = std::string(
      "\x0a\x04"
      "ab\xff"
      "c");
  const grpc::Status status = SendRaw(session_, "/heapbroker.v1.MemoryBroker/OpenSegment", bytes);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "name: is not valid UTF-8 at byte 2");
}

TEST_F(BadInputTest, RefusesBytesThatAreNoMessage) {
  for (const char* method :
       {"/heapbroker.v1.MemoryBroker/Allocate", "/heapbroker.v1.MemoryBroker/Release",
        "/heapbroker.v1.MemoryBroker/OpenSegment", "/heapbroker.v1.MemoryBroker/SealSegment",
        "/heapbroker.v1.MemoryBroker/CloseSegment", "/heapbroker.v1.MemoryBroker/Watch",
        "/heapbroker.v1.PoolStats/ListSessions", "/heapbroker.v1.PoolStats/ListLeases",
        "/heapbroker.v1.PoolStats/WatchStats", "/heapbroker.v1.Admin/Trim",
        "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}) {
    const grpc::Status status = SendRaw(session_, method, "\x0a\xff garbage");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("is not a valid")) << method;
  }
}

TEST_F(BadInputTest, AnswersUnknownMethodsWithUnimplemented) {
  EXPECT_EQ(SendRaw(session_, "/heapbroker.v1.MemoryBroker/Steal", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(BadInputTest, RefusesRequestsOverTheLimitAndServesTheNext) {
  const grpc::Status status = SendRaw(session_, "/heapbroker.v1.MemoryBroker/Allocate",
                                      std::string(kMaxRequestBytes + 1, 'x'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  AllocateOne(session_, 1);
}

TEST_F(BadInputTest, UnpacksNoCompressedRequest) {
  v1::OpenSegmentRequest request;
  request.set_name(std::string(4 << 20, 'n'));
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    CallContext context(session_);
    context.get()->set_compression_algorithm(algorithm);
    v1::OpenSegmentResponse response;
    // Unpacked it would be over the limit of size: RESOURCE_EXHAUSTED.
    EXPECT_EQ(memory_->OpenSegment(context.get(), request, &response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  CallContext context(session_);
  EXPECT_TRUE(Allocate(context, 1 << 20).ok());
}

TEST_F(BadInputTest, RefusesEnumsThatAreNotKnown) {
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  request.add_blocks()->set_size(1);
  request.mutable_blocks(1)->set_kind(static_cast<v1::MemoryKind>(17));
  v1::AllocateResponse response;
  CallContext context(session_);
  grpc::Status status = memory_->Allocate(context.get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("blocks[1].kind: 17"));

  v1::OpenSegmentRequest open = CreateRequest("weights");
  open.set_mode(static_cast<v1::OpenSegmentRequest::Mode>(-1));
  status = OpenSegment(session_, open);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("mode: -1"));
  open.set_mode(v1::OpenSegmentRequest::MODE_UNSPECIFIED);
  EXPECT_THAT(OpenSegment(session_, open).error_message(), StartsWith("mode: is unset"));
}

TEST_F(BadInputTest, NamesTheNewFieldOfARequestThatIsWrong) {
  const auto refused = [this](const v1::AllocateRequest& request) {
    v1::AllocateResponse response;
    CallContext context(session_);
    const grpc::Status status = memory_->Allocate(context.get(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::AllocateRequest request;
  request.add_blocks()->set_size(1);
  request.mutable_blocks(0)->set_heap_key("device_lcoal");
  EXPECT_THAT(refused(request), StartsWith("blocks[0].heap_key: \"device_lcoal\" at position 0"));
  request.mutable_blocks(0)->set_heap_key("transient");
  EXPECT_THAT(refused(request), StartsWith("blocks[0].heap_key: "));
  request.mutable_blocks(0)->clear_memory();
  request.mutable_blocks(0)->set_handle_type(static_cast<v1::HandleType>(9));
  EXPECT_THAT(refused(request), StartsWith("blocks[0].handle_type: 9"));
  request.mutable_blocks(0)->clear_handle_type();
  request.set_priority(static_cast<v1::Priority>(4));
  EXPECT_THAT(refused(request), StartsWith("priority: 4"));
  request.clear_priority();
  request.mutable_max_wait()->set_nanos(-1);
  EXPECT_THAT(refused(request), StartsWith("max_wait: "));
  request.clear_max_wait();
  request.set_device_index(1);
  EXPECT_THAT(refused(request), StartsWith("device_index: is 1"));
  EXPECT_TRUE(NothingHeld(session_));
  EXPECT_EQ(device_.counts().allocations, 0u);
}

TEST_F(BadInputTest, RefusesAReleaseOfBlocksAndOfARequestAtOnce) {
  v1::ReleaseRequest request;
  request.add_block_ids(AllocateOne(session_, 1).block_id());
  request.set_request_id(1);
  grpc::Status status = Release(session_, request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("request_id: "));
  request.clear_request_id();
  request.set_device_index(0);
  status = Release(session_, request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("device_index: "));
  EXPECT_EQ(broker_.Holdings(session_.session.id).leased_blocks, 1u);
  v1::ReleaseRequest unknown;
  unknown.set_request_id(1);
  EXPECT_EQ(Release(session_, unknown).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(BadInputTest, NamesTheTextOfANewFieldThatIsNotUtf8) {
  // AllocateRequest.blocks is field 1, BlockRequest.heap_key field 5.
  grpc::Status status = SendRaw(session_, "/heapbroker.v1.MemoryBroker/Allocate",
                                std::string("\x0a\x03\x2a\x01\xff", 5));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "blocks.heap_key: is not valid UTF-8 at byte 0");
  // TrimRequest.pool is field 2.
  status = SendRaw(session_, "/heapbroker.v1.Admin/Trim", std::string("\x12\x01\xff", 3));
  EXPECT_EQ(status.error_message(), "pool: is not valid UTF-8 at byte 0");
}

TEST_F(BadInputTest, RefusesASealWithoutChecksumOrSegment) {
  v1::OpenSegmentResponse opened;
  CallContext open_context(session_);
  ASSERT_TRUE(memory_->OpenSegment(open_context.get(), CreateRequest("weights"), &opened).ok());
  v1::SealSegmentRequest request;
  request.set_segment_id(opened.segment_id());
  v1::SealSegmentResponse response;
  CallContext no_checksum(session_);
  EXPECT_THAT(memory_->SealSegment(no_checksum.get(), request, &response).error_message(),
              StartsWith("checksum: "));
  request.mutable_checksum();  // Zero is a checksum like any other.
  request.set_segment_id(0);
  CallContext no_segment(session_);
  EXPECT_THAT(memory_->SealSegment(no_segment.get(), request, &response).error_message(),
              StartsWith("segment_id: "));
  request.set_segment_id(opened.segment_id());
  CallContext good(session_);
  EXPECT_TRUE(memory_->SealSegment(good.get(), request, &response).ok());
  CallContext twice(session_);
  EXPECT_EQ(memory_->SealSegment(twice.get(), request, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(BadInputTest, ClosesASilentOrBabblingConnectionWithoutHarm) {
  const absl::StatusOr<UniqueFd> silent =
      ConnectUnix(directory_.File("broker.sock"), SocketKind::kStream, absl::Seconds(5));
  ASSERT_TRUE(silent.ok());
  const absl::StatusOr<UniqueFd> babbling =
      ConnectUnix(directory_.File("broker.sock"), SocketKind::kStream, absl::Seconds(5));
  ASSERT_TRUE(babbling.ok());
  EXPECT_TRUE(WaitFor([this] { return server_->connections() == 2; }));
  const std::string garbage(1000, '\xAA');
  ASSERT_EQ(send(babbling->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 1000);
  AllocateOne(session_, 1);
  // The garbage is noticed and its connection closed; silence is not, so soon.
  EXPECT_TRUE(WaitFor([this] { return server_->connections() == 2; }));
}

// Silence, and the first words of HTTP/2 without the rest.
constexpr absl::string_view kHalfAHandshake[] = {"", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};

TEST_F(BadInputTest, ConnectionsThatGoNoFurtherTakeNoMoreThanTheirShareAndNotForLong) {
  const std::string path = directory_.File("small.sock");
  absl::StatusOr<UniqueFd> listener = ListenUnix(path, SocketKind::kStream, 0600);
  ASSERT_TRUE(listener.ok());
  RpcServerOptions options;
  options.max_connections = 4;
  options.reserved_connections = 0;  // The test may be run by root.
  options.handshake_timeout = absl::Milliseconds(200);
  const absl::StatusOr<std::unique_ptr<RpcServer>> server =
      StartServer(*std::move(listener), options);
  ASSERT_TRUE(server.ok());
  std::vector<UniqueFd> idlers;
  for (int i = 0; i < 100; ++i) {
    absl::StatusOr<UniqueFd> idler = ConnectUnix(path, SocketKind::kStream, absl::Seconds(5));
    ASSERT_TRUE(idler.ok()) << idler.status();
    const absl::string_view words = kHalfAHandshake[i % 2];
    // Refused ones may be closed by now.
    static_cast<void>(send(idler->get(), words.data(), words.size(), MSG_NOSIGNAL));
    idlers.push_back(*std::move(idler));
    ASSERT_LE((*server)->connections(), options.max_connections);
  }
  EXPECT_TRUE(WaitFor([&] { return (*server)->refused_connections() >= 90; }));
  EXPECT_TRUE(WaitFor([&] { return (*server)->connections() == 0; }));

  const auto stub = v1::PoolStats::NewStub(
      grpc::CreateChannel(absl::StrCat("unix:", path), grpc::InsecureChannelCredentials()));
  CallContext context;
  v1::GetStatsResponse response;
  const grpc::Status status = stub->GetStats(context.get(), {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(BadInputTest, ClosesAConnectionThatSaysNothingForTooLong) {
  const std::string path = directory_.File("impatient.sock");
  absl::StatusOr<UniqueFd> listener = ListenUnix(path, SocketKind::kStream, 0600);
  ASSERT_TRUE(listener.ok());
  RpcServerOptions options;
  options.handshake_timeout = absl::Milliseconds(200);
  const absl::StatusOr<std::unique_ptr<RpcServer>> server =
      StartServer(*std::move(listener), options);
  ASSERT_TRUE(server.ok());
  const absl::StatusOr<UniqueFd> silent = ConnectUnix(path, SocketKind::kStream, absl::Seconds(5));
  ASSERT_TRUE(silent.ok());
  EXPECT_TRUE(WaitFor([&] { return (*server)->connections() == 1; }));
  EXPECT_TRUE(WaitFor([&] { return (*server)->connections() == 0; }));
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/raw_session.h"

#include <array>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/grpc/session_metadata.h"
#include "common/grpc/status.h"
#include "common/posix/packet.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

absl::Status RefusalOf(const v1::SessionReply& reply) {
  if (!reply.has_refusal()) {
    return absl::InternalError(absl::StrCat("unexpected reply: ", reply.ShortDebugString()));
  }
  return absl::Status(static_cast<absl::StatusCode>(reply.refusal().code()),
                      reply.refusal().message());
}

}  // namespace

std::string HelloPacket(const std::string& name, uint32_t major) {
  v1::SessionRequest request;
  request.mutable_hello()->set_protocol_major(major);
  request.mutable_hello()->set_name(name);
  return request.SerializeAsString();
}

std::string FetchPacket(uint64_t block_id) {
  v1::SessionRequest request;
  request.mutable_fetch()->add_block_ids(block_id);
  return request.SerializeAsString();
}

absl::StatusOr<RawSocket> RawSocket::Connect(const std::string& path) {
  HB_ASSIGN_OR_RETURN(UniqueFd socket, ConnectUnix(path, SocketKind::kSeqPacket, kPatience));
  return RawSocket(std::move(socket));
}

absl::Status RawSocket::Send(absl::string_view packet, const std::vector<int>& descriptors) {
  return SendPacket(socket_, packet, descriptors).status();
}

absl::StatusOr<RawSocket::Reply> RawSocket::Receive() {
  HB_RETURN_IF_ERROR(WaitReadable(socket_, kPatience));
  std::array<char, 16384> buffer;
  HB_ASSIGN_OR_RETURN(ReceivedPacket packet, ReceivePacket(socket_, absl::MakeSpan(buffer), 8));
  if (packet.kind != ReceivedPacket::Kind::kMessage) {
    return absl::UnavailableError("the daemon has closed the connection");
  }
  Reply reply;
  if (!reply.message.ParseFromArray(buffer.data(), static_cast<int>(packet.size))) {
    return absl::InternalError("the reply is no SessionReply");
  }
  reply.descriptors = std::move(packet.descriptors);
  return reply;
}

absl::StatusOr<RawSocket::Reply> RawSocket::Ask(absl::string_view packet,
                                                const std::vector<int>& descriptors) {
  HB_RETURN_IF_ERROR(Send(packet, descriptors));
  return Receive();
}

bool RawSocket::IsDropped() {
  while (true) {
    const absl::Status received = Receive().status();
    if (!received.ok()) return absl::IsUnavailable(received);
  }
}

void Prepare(grpc::ClientContext& context, absl::string_view token) {
  context.AddMetadata(kSessionMetadataKey, std::string(token));
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

absl::StatusOr<RawSession> RawSession::Open(const std::string& session_socket,
                                            const std::shared_ptr<grpc::Channel>& channel,
                                            const std::string& name) {
  HB_ASSIGN_OR_RETURN(RawSocket socket, RawSocket::Connect(session_socket));
  RawSession session(std::move(socket));
  HB_ASSIGN_OR_RETURN(const RawSocket::Reply reply, session.socket_.Ask(HelloPacket(name)));
  if (!reply.message.has_welcome()) return RefusalOf(reply.message);
  session.token_ = reply.message.welcome().token();
  session.stub_ = v1::MemoryBroker::NewStub(channel);
  return session;
}

absl::StatusOr<v1::Block> RawSession::Allocate(uint64_t size, uint64_t alignment) {
  grpc::ClientContext context;
  Prepare(context, token_);
  v1::AllocateRequest request;
  v1::BlockRequest& block = *request.add_blocks();
  block.set_size(size);
  block.set_alignment(alignment);
  v1::AllocateResponse response;
  HB_RETURN_IF_ERROR(FromGrpcStatus(stub_->Allocate(&context, request, &response)));
  if (response.blocks_size() != 1) return absl::InternalError("not one block");
  return response.blocks(0);
}

absl::Status RawSession::Release(uint64_t block_id) {
  grpc::ClientContext context;
  Prepare(context, token_);
  v1::ReleaseRequest request;
  request.add_block_ids(block_id);
  v1::ReleaseResponse response;
  return FromGrpcStatus(stub_->Release(&context, request, &response));
}

absl::StatusOr<v1::OpenSegmentResponse> RawSession::OpenSegment(const std::string& name,
                                                                uint64_t size) {
  grpc::ClientContext context;
  Prepare(context, token_);
  v1::OpenSegmentRequest request;
  request.set_name(name);
  request.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  request.set_size(size);
  v1::OpenSegmentResponse response;
  HB_RETURN_IF_ERROR(FromGrpcStatus(stub_->OpenSegment(&context, request, &response)));
  return response;
}

absl::StatusOr<UniqueFd> RawSession::Fetch(uint64_t block_id) {
  HB_ASSIGN_OR_RETURN(RawSocket::Reply reply, socket_.Ask(FetchPacket(block_id)));
  if (!reply.message.has_fetched()) return RefusalOf(reply.message);
  if (reply.descriptors.size() != 1) return absl::InternalError("not one descriptor");
  return std::move(reply.descriptors[0]);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/connection.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/transport/convert.h"
#include "client/transport/refusal.h"
#include "client/transport/runtime_dirs.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "common/grpc/session_metadata.h"
#include "common/grpc/status.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace heapbroker {
namespace {

static_assert(kMaxClientNameBytes == kMaxNameBytes);

uint64_t NextNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

absl::StatusOr<std::string> NameFor(const std::string& wanted) {
  if (!wanted.empty()) {
    HB_RETURN_IF_ERROR(CheckName("ClientOptions.name", wanted));
    return wanted;
  }
  // A program cannot help how its file is called.
  const std::string program = program_invocation_short_name;
  return CheckName("name", program).ok() ? program : "unnamed";
}

struct OpenedSession {
  std::string runtime_dir;
  std::unique_ptr<SessionChannel> channel;
};

// The socket in the first directory that has one.
absl::StatusOr<OpenedSession> OpenFirst(const std::vector<std::string>& candidates,
                                        absl::Duration timeout) {
  for (const std::string& dir : candidates) {
    absl::StatusOr<std::unique_ptr<SessionChannel>> channel =
        SessionChannel::Open(absl::StrCat(dir, "/", kSessionSocketName), timeout);
    if (channel.ok()) return OpenedSession{.runtime_dir = dir, .channel = *std::move(channel)};
    if (!absl::IsNotFound(channel.status())) return std::move(channel).status();
  }
  return absl::NotFoundError(
      absl::StrCat("no heapbrokerd found: there is no ", kSessionSocketName, " in ",
                   absl::StrJoin(candidates, " or "),
                   "; start the daemon, or set HEAPBROKER_RUNTIME_DIR to its --runtime-dir"));
}

absl::Status CheckWelcome(const v1::Welcome& welcome) {
  if (welcome.protocol_major() != kProtocolMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat("the daemon speaks protocol version ", welcome.protocol_major(), ".",
                     welcome.protocol_minor(), " and this library ", kProtocolMajor, ".",
                     kProtocolMinor, "; install a library of the daemon's version"));
  }
  if (welcome.token().size() != kSessionTokenBytes) {
    return absl::InternalError(absl::StrCat("the daemon sent a token of ", welcome.token().size(),
                                            " bytes instead of ", kSessionTokenBytes));
  }
  return absl::OkStatus();
}

v1::ReleaseRequest UndoRequest(uint64_t request_id, uint32_t device_index) {
  v1::ReleaseRequest request;
  request.set_request_id(request_id);
  request.set_device_index(device_index);
  return request;
}

std::shared_ptr<grpc::Channel> OpenGrpc(const std::string& runtime_dir) {
  // The channel connects at its first call: by then the working directory may be
  // another one.
  std::error_code ignored;
  const std::filesystem::path path =
      std::filesystem::absolute(std::filesystem::path(runtime_dir) / kBrokerSocketName, ignored);
  grpc::ChannelArguments arguments;
  // Without this, channels of one process share a connection and its back-off:
  // the first call after reconnecting to a restarted daemon would fail.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(GrpcTarget(path.string()), grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> Connection::Connect(const ClientOptions& options) {
  v1::Hello hello;
  HB_ASSIGN_OR_RETURN(const std::string name, NameFor(options.name));
  hello.set_name(name);
  hello.set_protocol_major(kProtocolMajor);
  hello.set_protocol_minor(kProtocolMinor);
  hello.set_observer(options.observer);
  const std::vector<std::string> candidates =
      RuntimeDirCandidates(ReadRuntimeDirSources(options.runtime_dir));
  HB_ASSIGN_OR_RETURN(OpenedSession opened, OpenFirst(candidates, options.call_timeout));
  HB_ASSIGN_OR_RETURN(v1::Welcome welcome, opened.channel->SayHello(hello, options.call_timeout));
  HB_RETURN_IF_ERROR(CheckWelcome(welcome));

  std::shared_ptr<Connection> connection(new Connection());
  // First: without it every way out of here would look like a forked child's.
  connection->pid_ = getpid();
  HB_ASSIGN_OR_RETURN(connection->devices_, DevicesFrom(welcome));
  connection->number_ = NextNumber();
  connection->token_ = welcome.token();
  connection->session_id_ = welcome.session_id();
  connection->max_blocks_per_call_ = std::max<size_t>(welcome.limits().max_blocks_per_call(), 1);
  connection->call_timeout_ = options.call_timeout;
  connection->session_ = std::move(opened.channel);
  connection->channel_ = OpenGrpc(opened.runtime_dir);
  connection->stub_ = v1::MemoryBroker::NewStub(connection->channel_);
  connection->undoer_ = std::make_unique<RequestUndoer>(
      [self = connection.get()](grpc::ClientContext& context, const v1::ReleaseRequest& request) {
        self->Prepare(context, absl::InfiniteDuration());
        v1::ReleaseResponse response;
        // NOT_FOUND is the rule: mostly nothing was granted. After any other error
        // there is nobody who could do better.
        (void)self->stub_->Release(&context, request, &response);
      });
  return connection;
}

Connection::~Connection() {
  if (CheckProcess().ok()) return;
  // gRPC would wait for threads that only the parent has. A stub and a channel
  // are little to lose; the socket's copy in this process closes.
  (void)undoer_.release();
  (void)stub_.release();
  new std::shared_ptr<grpc::Channel>(std::move(channel_));
}

absl::Status Connection::CheckProcess() const {
  const pid_t pid = getpid();
  if (pid == pid_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this process (", pid, ") was forked off the one that connected (", pid_,
                   "), and a session does not survive that; connect in the child, after fork()"));
}

void Connection::Prepare(grpc::ClientContext& context, absl::Duration timeout) const {
  context.AddMetadata(kSessionMetadataKey, token_);
  if (timeout != absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
}

absl::Status Connection::Translate(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return SessionEndedError();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(
        absl::StrCat("the daemon does not answer (", status.error_message(),
                     "); imported memory stays valid; when the daemon is back, connect again"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(
        absl::StrCat("the daemon did not answer in time (", status.error_message(), ")"));
  }
  return WithRefusal(FromGrpcStatus(status), status.error_details());
}

template <typename Request, typename Response>
absl::Status Connection::Call(grpc::Status (v1::MemoryBroker::Stub::*method)(grpc::ClientContext*,
                                                                             const Request&,
                                                                             Response*),
                              const Request& request, Response& response) {
  HB_RETURN_IF_ERROR(CheckProcess());
  grpc::ClientContext context;
  Prepare(context, call_timeout_);
  return Translate((stub_.get()->*method)(&context, request, &response));
}

uint64_t Connection::NextRequestId() { return ++last_request_id_; }

absl::StatusOr<v1::AllocateResponse> Connection::Allocate(const v1::AllocateRequest& request,
                                                          grpc::ClientContext& context) {
  HB_RETURN_IF_ERROR(CheckProcess());
  v1::AllocateResponse response;
  HB_RETURN_IF_ERROR(Translate(stub_->Allocate(&context, request, &response)));
  return response;
}

absl::Status Connection::Release(absl::Span<const uint64_t> block_ids) {
  absl::Status first;
  for (size_t begin = 0; begin < block_ids.size(); begin += max_blocks_per_call_) {
    v1::ReleaseRequest request;
    const absl::Span<const uint64_t> part = block_ids.subspan(begin, max_blocks_per_call_);
    request.mutable_block_ids()->Add(part.begin(), part.end());
    v1::ReleaseResponse response;
    first.Update(Call(&v1::MemoryBroker::Stub::Release, request, response));
  }
  return first;
}

absl::Status Connection::UndoAllocate(uint64_t request_id, uint32_t device_index) {
  v1::ReleaseResponse response;
  return Call(&v1::MemoryBroker::Stub::Release, UndoRequest(request_id, device_index), response);
}

void Connection::UndoAllocateLater(uint64_t request_id, uint32_t device_index) {
  if (CheckProcess().ok()) undoer_->Add(UndoRequest(request_id, device_index));
}

absl::StatusOr<v1::OpenSegmentResponse> Connection::OpenSegment(
    const v1::OpenSegmentRequest& request, grpc::ClientContext& context) {
  HB_RETURN_IF_ERROR(CheckProcess());
  v1::OpenSegmentResponse response;
  HB_RETURN_IF_ERROR(Translate(stub_->OpenSegment(&context, request, &response)));
  return response;
}

absl::Status Connection::SealSegment(uint64_t segment_id, Checksum checksum) {
  v1::SealSegmentRequest request;
  request.set_segment_id(segment_id);
  *request.mutable_checksum() = ToMessage(checksum);
  v1::SealSegmentResponse response;
  return Call(&v1::MemoryBroker::Stub::SealSegment, request, response);
}

absl::Status Connection::CloseSegment(uint64_t segment_id) {
  v1::CloseSegmentRequest request;
  request.set_segment_id(segment_id);
  v1::CloseSegmentResponse response;
  return Call(&v1::MemoryBroker::Stub::CloseSegment, request, response);
}

std::unique_ptr<grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>> Connection::Watch(
    grpc::ClientContext& context) {
  return stub_->Watch(&context);
}

absl::StatusOr<UniqueFd> Connection::Fetch(uint64_t block_id) {
  HB_RETURN_IF_ERROR(CheckProcess());
  return session_->Fetch(block_id, call_timeout_);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/connection.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/transport/begin_session.h"
#include "client/transport/cancel_hook.h"
#include "client/transport/convert.h"
#include "client/transport/refusal.h"
#include "client/transport/runtime_dirs.h"
#include "common/base/status_macros.h"
#include "common/grpc/session_metadata.h"
#include "common/grpc/status.h"
#include "common/posix/epoll.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace heapbroker {
namespace {

uint64_t NextNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

v1::ReleaseRequest UndoRequest(uint64_t request_id, uint32_t device_index) {
  v1::ReleaseRequest request;
  request.set_request_id(request_id);
  request.set_device_index(device_index);
  return request;
}

// The process that has used gRPC; 0 if none has. In its children gRPC's calls never
// return, with or without a deadline: the threads that would see to that are not there.
std::atomic<pid_t> grpc_user = 0;

absl::Status CheckGrpcWorks() {
  const pid_t user = grpc_user;
  return user == 0 ? absl::OkStatus() : CheckNotForked(user);
}

std::shared_ptr<grpc::Channel> OpenGrpc(const std::string& runtime_dir) {
  grpc_user = getpid();
  grpc::ChannelArguments arguments;
  // Without this, channels of one process share a connection and its back-off:
  // the first call after reconnecting to a restarted daemon would fail.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Made for networks, gRPC's own would refuse calls for minutes after a process had
  // no descriptor left for a moment.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(GrpcTarget(absl::StrCat(runtime_dir, "/", kBrokerSocketName)),
                                   grpc::InsecureChannelCredentials(), arguments);
}

// Whether a call that gives something back has to be repeated: it may not have arrived,
// or failed there for a reason that passes. Any other answer is the last: NOT_FOUND is
// the rule, since mostly nothing was granted, or it was released.
bool HasToBeRepeated(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return true;
    default:
      return false;
  }
}

// Whether this process could open one more.
bool HasFreeDescriptor() { return WakeUp::Create().ok(); }

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> Connection::Connect(const ClientOptions& options,
                                                                const CallLimits& limits) {
  HB_RETURN_IF_ERROR(CheckGrpcWorks());
  HB_ASSIGN_OR_RETURN(BegunSession opened, BeginSession(options, limits));

  std::shared_ptr<Connection> connection(new Connection());
  // First: without it every way out of here would look like a forked child's.
  connection->pid_ = getpid();
  HB_ASSIGN_OR_RETURN(connection->devices_, DevicesFrom(opened.welcome));
  connection->number_ = NextNumber();
  connection->token_ = opened.welcome.token();
  connection->session_id_ = opened.welcome.session_id();
  connection->max_blocks_per_call_ =
      std::max<size_t>(opened.welcome.limits().max_blocks_per_call(), 1);
  connection->call_timeout_ = options.call_timeout;
  connection->runtime_dir_ = opened.runtime_dir;
  connection->session_ = std::move(opened.channel);
  connection->channel_ = OpenGrpc(opened.runtime_dir);
  connection->stub_ = v1::MemoryBroker::NewStub(connection->channel_);
  connection->undoer_ = std::make_unique<RequestUndoer>();
  return connection;
}

Connection::~Connection() {
  if (CheckProcess().ok()) {
    // A forked child may have a copy of the socket: closing this one is not enough.
    if (session_ != nullptr) session_->HangUp();
    return;
  }
  // gRPC would wait for threads that only the parent has. A stub and a channel
  // are little to lose; the socket's copy in this process closes.
  (void)undoer_.release();
  (void)stub_.release();
  new std::shared_ptr<grpc::Channel>(std::move(channel_));
}

absl::Status Connection::CheckProcess() const { return CheckNotForked(pid_); }

void Connection::MarkLost() {
  if (lost_.exchange(true)) return;
  // Whatever still waits for the session's end, or believes in it.
  session_->HangUp();
  ended_->Cancel();
  if (on_lost_) on_lost_();
}

bool Connection::Alive() {
  if (lost_) return false;
  if (!session_->HungUp()) return true;
  MarkLost();
  return false;
}

absl::Status Connection::AwaitEnd(absl::Duration timeout, const UniqueFd* interrupt) {
  HB_RETURN_IF_ERROR(session_->AwaitHangUp(timeout, interrupt));
  MarkLost();
  return absl::OkStatus();
}

absl::Status Connection::CheckUsable() {
  HB_RETURN_IF_ERROR(CheckProcess());
  return Alive() ? absl::OkStatus() : SessionEndedError();
}

void Connection::Prepare(grpc::ClientContext& context, absl::Duration timeout) const {
  context.AddMetadata(kSessionMetadataKey, token_);
  const absl::Time deadline = absl::Now() + timeout;
  if (deadline != absl::InfiniteFuture()) context.set_deadline(absl::ToChronoTime(deadline));
}

absl::Status Connection::Translate(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return SessionEndedError();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return absl::UnavailableError(
        absl::StrCat("the daemon does not answer (", status.error_message(),
                     "); imported memory stays valid; try again when the daemon is back"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(
        absl::StrCat("the daemon did not answer in time (", status.error_message(), ")"));
  }
  return WithRefusal(FromGrpcStatus(status), status.error_details());
}

absl::Status Connection::Conclude(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
      MarkLost();
      break;
    case grpc::StatusCode::UNAVAILABLE:
      if (!Alive()) return SessionEndedError();
      if (HasFreeDescriptor()) break;
      return absl::ResourceExhaustedError(
          "this process is at its descriptor limit (RLIMIT_NOFILE) and cannot reach the daemon; "
          "close some or raise the limit, then try again");
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      if (!Alive()) return SessionEndedError();
      break;
    default:
      break;
  }
  return Translate(status);
}

template <typename Request, typename Response>
absl::Status Connection::Call(
    grpc::Status (v1::MemoryBroker::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request, Response& response, const CallLimits& limits) {
  HB_RETURN_IF_ERROR(CheckUsable());
  grpc::ClientContext context;
  Prepare(context, limits.left());
  const CancelHook hook(limits.cancellation(), [&context] { context.TryCancel(); });
  const CancelHook loss_hook(ended_, [&context] { context.TryCancel(); });
  if (hook.cancelled()) return absl::CancelledError("the call was cancelled before it began");
  if (loss_hook.cancelled()) return SessionEndedError();
  const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
  if (status.error_code() == grpc::StatusCode::CANCELLED && hook.cancelled()) {
    return absl::CancelledError("the call was cancelled before the daemon had answered");
  }
  return Conclude(status);
}

uint64_t Connection::NextRequestId() { return ++last_request_id_; }

absl::StatusOr<v1::AllocateResponse> Connection::Allocate(const v1::AllocateRequest& request,
                                                          const CallLimits& limits) {
  v1::AllocateResponse response;
  HB_RETURN_IF_ERROR(Call(&v1::MemoryBroker::Stub::Allocate, request, response, limits));
  return response;
}

absl::Status Connection::Release(absl::Span<const uint64_t> block_ids, const CallLimits& limits) {
  absl::Status first;
  for (size_t begin = 0; begin < block_ids.size(); begin += max_blocks_per_call_) {
    v1::ReleaseRequest request;
    const absl::Span<const uint64_t> part = block_ids.subspan(begin, max_blocks_per_call_);
    request.mutable_block_ids()->Add(part.begin(), part.end());
    v1::ReleaseResponse response;
    first.Update(Call(&v1::MemoryBroker::Stub::Release, request, response, limits));
  }
  return first;
}

void Connection::DoLater(std::function<grpc::Status(grpc::ClientContext&)> call) {
  if (!CheckUsable().ok()) return;
  undoer_->Add([this, call = std::move(call)](grpc::ClientContext& context) {
    // Without telling anybody of the loss, who might then want this thread to end.
    if (lost() || session_->HungUp()) return true;
    Prepare(context, absl::InfiniteDuration());
    const CancelHook loss_hook(ended_, [&context] { context.TryCancel(); });
    return !HasToBeRepeated(call(context).error_code());
  });
}

void Connection::ReleaseLater(absl::Span<const uint64_t> block_ids) {
  for (const uint64_t block_id : block_ids) {
    v1::ReleaseRequest request;
    request.add_block_ids(block_id);
    DoLater([this, request](grpc::ClientContext& context) {
      v1::ReleaseResponse response;
      return stub_->Release(&context, request, &response);
    });
  }
}

absl::Status Connection::UndoAllocate(uint64_t request_id, uint32_t device_index,
                                      const CallLimits& limits) {
  v1::ReleaseResponse response;
  return Call(&v1::MemoryBroker::Stub::Release, UndoRequest(request_id, device_index), response,
              limits);
}

void Connection::UndoAllocateLater(uint64_t request_id, uint32_t device_index) {
  DoLater([this, request = UndoRequest(request_id, device_index)](grpc::ClientContext& context) {
    v1::ReleaseResponse response;
    return stub_->Release(&context, request, &response);
  });
}

absl::StatusOr<v1::OpenSegmentResponse> Connection::OpenSegment(
    const v1::OpenSegmentRequest& request, const CallLimits& limits) {
  HB_RETURN_IF_ERROR(CheckUsable());
  const SegmentClaims::Key key(request.device_index(), request.name());
  {
    const TurnHolder turn(closing_, limits, "a segment was closed once more");
    HB_RETURN_IF_ERROR(turn.status());
    claims_.Add(key);
  }
  v1::OpenSegmentResponse response;
  const absl::Status status = Call(&v1::MemoryBroker::Stub::OpenSegment, request, response, limits);
  if (status.ok()) return response;
  EndClaim(key);
  return status;
}

absl::Status Connection::SealSegment(uint64_t segment_id, Checksum checksum,
                                     const CallLimits& limits) {
  v1::SealSegmentRequest request;
  request.set_segment_id(segment_id);
  *request.mutable_checksum() = ToMessage(checksum);
  v1::SealSegmentResponse response;
  return Call(&v1::MemoryBroker::Stub::SealSegment, request, response, limits);
}

absl::Status Connection::CloseSegment(uint64_t segment_id, const CallLimits& limits) {
  v1::CloseSegmentRequest request;
  request.set_segment_id(segment_id);
  v1::CloseSegmentResponse response;
  return Call(&v1::MemoryBroker::Stub::CloseSegment, request, response, limits);
}

void Connection::EndClaim(const SegmentClaims::Key& key) {
  for (const uint64_t segment_id : claims_.Remove(key)) {
    RepeatClose(key, segment_id, /*sealed=*/true);
  }
}

void Connection::CloseSegmentLater(const SegmentClaims::Key& key, uint64_t segment_id,
                                   bool sealed) {
  EndClaim(key);
  RepeatClose(key, segment_id, sealed);
}

void Connection::RepeatClose(const SegmentClaims::Key& key, uint64_t segment_id, bool sealed) {
  DoLater([this, key, segment_id, sealed](grpc::ClientContext& context) {
    const TurnHolder turn(closing_);
    if (sealed && !claims_.MayRepeatClose(key, segment_id)) return grpc::Status::OK;
    v1::CloseSegmentRequest request;
    request.set_segment_id(segment_id);
    v1::CloseSegmentResponse response;
    return stub_->CloseSegment(&context, request, &response);
  });
}

std::unique_ptr<grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>> Connection::Watch(
    grpc::ClientContext& context) {
  return stub_->Watch(&context);
}

absl::StatusOr<std::vector<UniqueFd>> Connection::Fetch(absl::Span<const uint64_t> block_ids,
                                                        const CallLimits& limits) {
  HB_RETURN_IF_ERROR(CheckUsable());
  absl::StatusOr<std::vector<UniqueFd>> fetched = session_->Fetch(block_ids, limits);
  if (absl::IsUnavailable(fetched.status())) Alive();
  return fetched;
}

}  // namespace heapbroker

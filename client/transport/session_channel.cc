// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/session_channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/cancel_hook.h"
#include "client/transport/descriptor_turn.h"
#include "common/base/status_macros.h"
#include "common/posix/epoll.h"
#include "common/posix/posix_error.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {
namespace {

// The largest answer is a Welcome that lists every device, about 1 KiB each.
constexpr size_t kMaxReplyBytes = 64 * 1024;

absl::Status FromRefusal(const v1::Refusal& refusal) {
  constexpr uint32_t kLastCode = static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  const bool known = refusal.code() >= 1 && refusal.code() <= kLastCode;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(refusal.code()) : absl::StatusCode::kUnknown,
      refusal.message());
}

absl::Status CheckCloseOnExec(const UniqueFd& fd) {
  const int flags = fcntl(fd.get(), F_GETFD);
  if (flags < 0) return PosixError(errno, "cannot look at a received descriptor");
  if ((flags & FD_CLOEXEC) == 0) {
    return absl::InternalError("a received descriptor came without close-on-exec");
  }
  return absl::OkStatus();
}

// Whether the reply says the first of the blocks that were asked for.
absl::Status CheckFetched(const v1::SessionReply& reply, absl::Span<const uint64_t> asked) {
  const auto& sent = reply.fetched().block_ids();
  if (!sent.empty() && static_cast<size_t>(sent.size()) <= asked.size() &&
      std::equal(sent.begin(), sent.end(), asked.begin())) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("the daemon answered the fetch of block ", asked[0], " with something else"));
}

absl::Status CancelledError() {
  return absl::CancelledError("the call was cancelled before the daemon had answered");
}

// A listener whose backlog is full makes connecting wait, in the kernel and where
// nothing else can end it: so whoever may be cancelled looks up now and then.
absl::StatusOr<UniqueFd> ConnectWithin(const std::string& path, const CallLimits& limits) {
  constexpr absl::Duration kLook = absl::Milliseconds(20);
  while (true) {
    if (limits.cancelled()) return CancelledError();
    const absl::Duration left = limits.left();
    const bool last = limits.cancellation() == nullptr || left <= kLook;
    absl::StatusOr<UniqueFd> socket =
        ConnectUnix(path, SocketKind::kSeqPacket, last ? left : kLook);
    if (last || !absl::IsDeadlineExceeded(socket.status())) return socket;
  }
}

}  // namespace

absl::Status SessionEndedError() {
  return absl::UnavailableError(
      "the session has ended: the daemon stopped, or ended it; imported memory stays valid, but "
      "all its leases and attachments are lost; what is still needed must be leased and attached "
      "to again, in a new session");
}

SessionChannel::SessionChannel(UniqueFd socket)
    : socket_(std::move(socket)), buffer_(kMaxReplyBytes) {}

absl::StatusOr<std::unique_ptr<SessionChannel>> SessionChannel::Open(const std::string& path,
                                                                     const CallLimits& limits) {
  HB_ASSIGN_OR_RETURN(UniqueFd socket, ConnectWithin(path, limits));
  // So that a daemon that reads nothing cannot hold a thread in sendmsg.
  if (fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) {
    return PosixError(errno, "cannot make the session socket non-blocking");
  }
  return std::unique_ptr<SessionChannel>(new SessionChannel(std::move(socket)));
}

bool SessionChannel::HungUp() const {
  return lost_ || WaitForHangUp(socket_, absl::ZeroDuration()).ok();
}

absl::Status SessionChannel::AwaitHangUp(absl::Duration timeout, const UniqueFd* interrupt) const {
  return WaitForHangUp(socket_, timeout, interrupt);
}

void SessionChannel::HangUp() {
  lost_ = true;
  shutdown(socket_.get(), SHUT_RDWR);
}

absl::Status SessionChannel::Lost() {
  lost_ = true;
  return SessionEndedError();
}

absl::Status SessionChannel::Send(const v1::SessionRequest& request) {
  absl::StatusOr<SendResult> sent = SendPacket(socket_, request.SerializeAsString());
  if (absl::IsUnavailable(sent.status())) return Lost();
  if (!sent.ok()) return std::move(sent).status();
  if (*sent == SendResult::kWouldBlock) {
    return absl::DeadlineExceededError(
        "the daemon does not read its session socket; it may be stopped or overloaded; try again");
  }
  return absl::OkStatus();
}

absl::StatusOr<ReceivedPacket> SessionChannel::ReceiveNow(const CallLimits& limits) {
  TurnHolder turn(DescriptorTurn(), limits, "an import of this process did not end");
  HB_RETURN_IF_ERROR(turn.status());
  return ReceivePacket(socket_, absl::MakeSpan(buffer_), max_blocks_per_fetch_);
}

absl::StatusOr<SessionChannel::Answer> SessionChannel::Receive(const CallLimits& limits,
                                                               const UniqueFd* interrupt) {
  while (true) {
    HB_RETURN_IF_ERROR(WaitReadable(socket_, limits.left(), interrupt));
    absl::StatusOr<ReceivedPacket> packet = ReceiveNow(limits);
    if (absl::IsUnavailable(packet.status())) return Lost();
    if (!packet.ok()) return std::move(packet).status();
    if (packet->kind == ReceivedPacket::Kind::kWouldBlock) continue;
    if (packet->kind == ReceivedPacket::Kind::kEnd) return Lost();
    if (overdue_answers_ > 0) {
      --overdue_answers_;
      continue;
    }
    Answer answer{.descriptors = std::move(packet->descriptors),
                  .descriptors_lost = packet->descriptors_lost};
    if (packet->truncated ||
        !answer.reply.ParseFromArray(buffer_.data(), static_cast<int>(packet->size))) {
      return absl::InternalError(absl::StrCat("the daemon sent ", packet->size,
                                              " bytes that are no answer; is the socket its own?"));
    }
    return answer;
  }
}

absl::StatusOr<SessionChannel::Answer> SessionChannel::AwaitAnswer(const CallLimits& limits,
                                                                   const UniqueFd* interrupt) {
  absl::StatusOr<Answer> answer = Receive(limits, interrupt);
  const bool cancelled = absl::IsCancelled(answer.status());
  if (!cancelled && !absl::IsDeadlineExceeded(answer.status())) return answer;
  // It may still come. Then it must not be taken for the next request's.
  ++overdue_answers_;
  if (cancelled) return CancelledError();
  return absl::DeadlineExceededError(
      absl::StrCat("the daemon did not answer on its session socket within ",
                   absl::FormatDuration(limits.timeout()),
                   "; it may be overloaded, or a driver may hang in an import of this process; try "
                   "again"));
}

absl::StatusOr<SessionChannel::Answer> SessionChannel::Exchange(const v1::SessionRequest& request,
                                                                const CallLimits& limits) {
  if (lost_) return SessionEndedError();
  TurnHolder turn(turn_, limits, "other threads used the session socket");
  HB_RETURN_IF_ERROR(turn.status());
  if (limits.cancellation() == nullptr) {
    HB_RETURN_IF_ERROR(Send(request));
    return AwaitAnswer(limits, nullptr);
  }
  // Before anything is sent: without it nothing could be cancelled.
  HB_ASSIGN_OR_RETURN(WakeUp interrupt, WakeUp::Create());
  const CancelHook hook(limits.cancellation(), [&interrupt] { interrupt.Signal(); });
  if (hook.cancelled()) return CancelledError();
  HB_RETURN_IF_ERROR(Send(request));
  return AwaitAnswer(limits, &interrupt.fd());
}

absl::StatusOr<v1::Welcome> SessionChannel::SayHello(const v1::Hello& hello,
                                                     const CallLimits& limits) {
  v1::SessionRequest request;
  *request.mutable_hello() = hello;
  HB_ASSIGN_OR_RETURN(Answer answer, Exchange(request, limits));
  if (answer.reply.has_refusal()) return FromRefusal(answer.reply.refusal());
  if (!answer.reply.has_welcome()) {
    return absl::InternalError("the daemon answered the greeting with something else");
  }
  max_blocks_per_fetch_ = std::clamp<size_t>(answer.reply.welcome().limits().max_blocks_per_fetch(),
                                             1, kMaxPacketDescriptors);
  return std::move(*answer.reply.mutable_welcome());
}

absl::StatusOr<std::vector<UniqueFd>> SessionChannel::Fetch(absl::Span<const uint64_t> block_ids,
                                                            const CallLimits& limits) {
  const absl::Span<const uint64_t> asked = block_ids.subspan(0, max_blocks_per_fetch_);
  v1::SessionRequest request;
  request.mutable_fetch()->mutable_block_ids()->Add(asked.begin(), asked.end());
  HB_ASSIGN_OR_RETURN(Answer answer, Exchange(request, limits));
  if (answer.reply.has_refusal()) return FromRefusal(answer.reply.refusal());
  HB_RETURN_IF_ERROR(CheckFetched(answer.reply, asked));
  const size_t sent = static_cast<size_t>(answer.reply.fetched().block_ids_size());
  std::vector<UniqueFd>& descriptors = answer.descriptors;
  if (answer.descriptors_lost && descriptors.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the descriptor of block ", asked[0],
        " could not be received: this process is at its descriptor limit (RLIMIT_NOFILE); close "
        "some or raise the limit, then fetch again"));
  }
  // Those that there was no room for are the last ones.
  if (answer.descriptors_lost ? descriptors.size() >= sent : descriptors.size() != sent) {
    return absl::InternalError(absl::StrCat("the daemon sent ", descriptors.size(),
                                            " descriptors for ", sent,
                                            " blocks, the first of them ", asked[0]));
  }
  for (const UniqueFd& fd : descriptors) HB_RETURN_IF_ERROR(CheckCloseOnExec(fd));
  return std::move(descriptors);
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// MemoryBroker.Watch: a session's stream, from its beginning to its end.
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/rpc/convert_watch.h"
#include "daemon/rpc/memory_broker_service.h"
#include "daemon/rpc/rate_limit.h"

namespace heapbroker {
namespace {

constexpr uint32_t kReportsPerSecond = 10;

absl::Status Replaced() {
  return absl::AbortedError(
      "the session has begun another Watch, which ends this one; use one for each session");
}

}  // namespace

// What belongs to one Watch. The call owns it, so it must not own the call.
struct MemoryBrokerService::OpenWatch {
  Caller caller;
  SessionId session;
  uint64_t number = 0;
  std::shared_ptr<SessionReports> reports;
  RateLimit limit{kReportsPerSecond, absl::Seconds(1) / kReportsPerSecond};
};

void MemoryBrokerService::Watch(const Caller& caller, WatchReply reply) {
  const absl::StatusOr<Session> session = FindClientSession(sessions_, caller);
  if (!session.ok()) return reply.Finish(session.status());
  auto queue = std::make_shared<WatchQueue>();
  reply.SetSource([this, queue]() -> std::optional<v1::WatchEvent> {
    const std::optional<WatchedEvent> event = queue->Pop();
    if (!event.has_value()) return std::nullopt;
    return WatchEventMessage(*event, clock_.Now());
  });
  const WatchStreams::Begun begun =
      watches_.Begin(session->id, {queue, std::make_shared<SessionReports>(devices_, session->id),
                                   [reply] { reply.Changed(); },
                                   [reply](const absl::Status& status) { reply.Finish(status); }});
  begun.reports->Begin(begun.number);
  if (begun.replaced.has_value()) begun.replaced->finish(Replaced());
  // Whoever ended the session meanwhile saw no Watch to end.
  const absl::Status still_there = FindClientSession(sessions_, caller).status();
  if (!still_there.ok()) return watches_.Finish(session->id, still_there);

  const auto watch =
      std::make_shared<OpenWatch>(OpenWatch{caller, session->id, begun.number, begun.reports});
  reply.OnCancelled([this, watch] { EndWatch(*watch); });
  reply.Read([this, watch](const absl::StatusOr<std::optional<v1::WatchRequest>>& message,
                           const WatchReply& read_reply) {
    const absl::Status status = TakeReport(*watch, message);
    if (status.ok() && message->has_value()) return;
    EndWatch(*watch);
    read_reply.Finish(status);
  });
}

absl::Status MemoryBrokerService::TakeReport(
    OpenWatch& watch, const absl::StatusOr<std::optional<v1::WatchRequest>>& message) {
  HB_RETURN_IF_ERROR(message.status());
  if (!message->has_value()) return absl::OkStatus();
  if (!watch.limit.Take(clock_.Now())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a Watch takes ", kReportsPerSecond,
                     " messages a second; begin another one, and send what is idle less often"));
  }
  HB_RETURN_IF_ERROR(FindClientSession(sessions_, watch.caller).status());
  HB_ASSIGN_OR_RETURN(IdleByDevice idle, IdleByDeviceOf(**message, devices_));
  watch.reports->Report(watch.number, std::move(idle));
  return absl::OkStatus();
}

void MemoryBrokerService::EndWatch(OpenWatch& watch) {
  // In this order: a Watch that begins in between takes the reports over.
  watch.reports->End(watch.number);
  watches_.End(watch.session, watch.number);
}

}  // namespace heapbroker

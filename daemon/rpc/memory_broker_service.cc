// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/memory_broker_service.h"

#include <utility>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "daemon/rpc/convert.h"

namespace heapbroker {

MemoryBrokerService::MemoryBrokerService(const Sessions& sessions, DeviceBroker& broker,
                                         PendingCalls& pending)
    : sessions_(sessions), broker_(broker), pending_(pending) {}

void MemoryBrokerService::Allocate(const Caller& caller, const v1::AllocateRequest& request,
                                   UnaryReply<v1::AllocateResponse> reply) {
  const absl::StatusOr<Session> session = FindClientSession(sessions_, caller);
  if (!session.ok()) return reply.Finish(session.status());
  const absl::StatusOr<std::vector<BlockRequest>> blocks = BlockRequestsOf(request);
  if (!blocks.ok()) return reply.Finish(blocks.status());
  StartAllocate(session->id, *blocks, reply);
}

void MemoryBrokerService::StartAllocate(SessionId session, const std::vector<BlockRequest>& blocks,
                                        const UnaryReply<v1::AllocateResponse>& reply) {
  const CallId call = pending_.AddAllocate([this, session, reply](absl::StatusOr<Grant> grant) {
    AnswerAllocate(session, grant, reply);
  });
  absl::StatusOr<std::variant<Grant, Deferred>> answer =
      broker_.Allocate(session, call, {.blocks = blocks});
  if (answer.ok() && std::holds_alternative<Deferred>(*answer)) {
    // The event may have come by now; then the call has ended, and this is dropped.
    reply.OnCancelled([this, session, call] { broker_.Cancel(session, call); });
    return;
  }
  pending_.Remove(call);
  if (!answer.ok()) return reply.Finish(answer.status());
  AnswerAllocate(session, std::get<Grant>(*std::move(answer)), reply);
}

void MemoryBrokerService::AnswerAllocate(SessionId session, const absl::StatusOr<Grant>& grant,
                                         const UnaryReply<v1::AllocateResponse>& reply) {
  if (!grant.ok()) return reply.Finish(grant.status());
  std::vector<BlockId> blocks;
  for (const GrantedBlock& block : grant->blocks) blocks.push_back(block.id);
  reply.Finish(AllocateMessage(*grant, broker_.info()),
               // Fails only if the session has ended, which gave the blocks back.
               [this, session, blocks = std::move(blocks)] {
                 broker_.Release(session, blocks).IgnoreError();
               });
}

void MemoryBrokerService::Release(const Caller& caller, const v1::ReleaseRequest& request,
                                  UnaryReply<v1::ReleaseResponse> reply) {
  reply.Finish(DoRelease(caller, request));
}

absl::StatusOr<v1::ReleaseResponse> MemoryBrokerService::DoRelease(
    const Caller& caller, const v1::ReleaseRequest& request) {
  HB_ASSIGN_OR_RETURN(const Session session, FindClientSession(sessions_, caller));
  HB_ASSIGN_OR_RETURN(const std::vector<BlockId> blocks, BlockIdsOf(request));
  HB_RETURN_IF_ERROR(broker_.Release(session.id, blocks));
  return v1::ReleaseResponse();
}

void MemoryBrokerService::OpenSegment(const Caller& caller, const v1::OpenSegmentRequest& request,
                                      UnaryReply<v1::OpenSegmentResponse> reply) {
  const absl::StatusOr<Session> session = FindClientSession(sessions_, caller);
  if (!session.ok()) return reply.Finish(session.status());
  absl::StatusOr<OpenSegmentRequest> segment = OpenSegmentRequestOf(request);
  if (!segment.ok()) return reply.Finish(segment.status());
  StartOpenSegment(session->id, *std::move(segment), reply);
}

void MemoryBrokerService::StartOpenSegment(SessionId session, OpenSegmentRequest segment,
                                           const UnaryReply<v1::OpenSegmentResponse>& reply) {
  const CallId call =
      pending_.AddOpenSegment([this, session, reply](absl::StatusOr<SegmentView> view) {
        AnswerOpenSegment(session, view, reply);
      });
  absl::StatusOr<std::variant<SegmentView, Deferred>> answer =
      broker_.OpenSegment(session, call, std::move(segment));
  if (answer.ok() && std::holds_alternative<Deferred>(*answer)) {
    reply.OnCancelled([this, session, call] { broker_.Cancel(session, call); });
    return;
  }
  pending_.Remove(call);
  if (!answer.ok()) return reply.Finish(answer.status());
  AnswerOpenSegment(session, std::get<SegmentView>(*std::move(answer)), reply);
}

void MemoryBrokerService::AnswerOpenSegment(SessionId session,
                                            const absl::StatusOr<SegmentView>& segment,
                                            const UnaryReply<v1::OpenSegmentResponse>& reply) {
  if (!segment.ok()) return reply.Finish(segment.status());
  reply.Finish(
      OpenSegmentMessage(*segment, broker_.info()),
      // Attachments are counted, so this undoes this one only.
      [this, session, id = segment->id] { broker_.CloseSegment(session, id).IgnoreError(); });
}

void MemoryBrokerService::SealSegment(const Caller& caller, const v1::SealSegmentRequest& request,
                                      UnaryReply<v1::SealSegmentResponse> reply) {
  reply.Finish(DoSeal(caller, request));
}

absl::StatusOr<v1::SealSegmentResponse> MemoryBrokerService::DoSeal(
    const Caller& caller, const v1::SealSegmentRequest& request) {
  HB_ASSIGN_OR_RETURN(const Session session, FindClientSession(sessions_, caller));
  HB_ASSIGN_OR_RETURN(const SegmentId segment, SegmentIdOf(request));
  HB_ASSIGN_OR_RETURN(const Checksum checksum, ChecksumOf(request));
  HB_RETURN_IF_ERROR(broker_.SealSegment(session.id, segment, checksum));
  return v1::SealSegmentResponse();
}

void MemoryBrokerService::CloseSegment(const Caller& caller, const v1::CloseSegmentRequest& request,
                                       UnaryReply<v1::CloseSegmentResponse> reply) {
  reply.Finish(DoClose(caller, request));
}

absl::StatusOr<v1::CloseSegmentResponse> MemoryBrokerService::DoClose(
    const Caller& caller, const v1::CloseSegmentRequest& request) {
  HB_ASSIGN_OR_RETURN(const Session session, FindClientSession(sessions_, caller));
  HB_ASSIGN_OR_RETURN(const SegmentId segment, SegmentIdOf(request));
  HB_RETURN_IF_ERROR(broker_.CloseSegment(session.id, segment));
  return v1::CloseSegmentResponse();
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/memory_broker_service.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/rpc/convert.h"
#include "daemon/rpc/convert_refusal.h"

namespace heapbroker {
namespace {

// The device that `id` is on. One that is on none is asked of the first, which
// never gave it out: it answers as for any other that it does not know.
template <typename Id>
DeviceBroker& DeviceToAsk(const Devices& devices, Id id) {
  DeviceBroker* const device = devices.Of(id);
  return device != nullptr ? *device : *devices.all().front();
}

absl::Status CheckOneDevice(const std::vector<BlockId>& blocks) {
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (DeviceIndexOf(blocks[i]) == DeviceIndexOf(blocks[0])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("block_ids[", i,
                     "]: is on another device than block_ids[0]; send one call "
                     "for each device"));
  }
  return absl::OkStatus();
}

// Ids from 2^63 on are of requests that are never repeated: see AllocateRequest.
bool MayBeRepeated(RequestId request) {
  return request != RequestId() && request.value() < uint64_t{1} << 63;
}

}  // namespace

MemoryBrokerService::MemoryBrokerService(const Sessions& sessions, const Devices& devices,
                                         PendingCalls& pending, WatchStreams& watches,
                                         const Clock& clock)
    : sessions_(sessions), devices_(devices), pending_(pending), watches_(watches), clock_(clock) {}

absl::Status MemoryBrokerService::Explain(const absl::Status& status, const Caller& caller,
                                          const DeviceBroker& device) const {
  const uint32_t index = device.info().index;
  // Tokens end before sessions do, so this one is open, and not the device's.
  if (absl::IsUnauthenticated(status) && FindSession(sessions_, caller).ok()) {
    return absl::PermissionDeniedError(
        absl::StrCat("device_index: device ", index,
                     " does not serve this session; name one of those in "
                     "Welcome.devices"));
  }
  return WithRefusalDetails(status, index);
}

void MemoryBrokerService::Allocate(const Caller& caller, const v1::AllocateRequest& request,
                                   UnaryReply<v1::AllocateResponse> reply) {
  const absl::StatusOr<Session> session = FindClientSession(sessions_, caller);
  if (!session.ok()) return reply.Finish(session.status());
  const absl::StatusOr<AllocateRequest> converted =
      AllocateRequestOf(request, {clock_.Now(), caller.deadline});
  if (!converted.ok()) return reply.Finish(converted.status());
  const absl::StatusOr<DeviceBroker*> device = devices_.Named(DeviceIndexIn(request));
  if (!device.ok()) return reply.Finish(device.status());
  StartAllocate({caller, session->id, **device}, *converted, reply);
}

void MemoryBrokerService::StartAllocate(const Asked& asked, const AllocateRequest& request,
                                        const UnaryReply<v1::AllocateResponse>& reply) {
  const CallId call = pending_.AddAllocate(
      [this, asked, id = request.request_id, reply](absl::StatusOr<Grant> grant) {
        AnswerAllocate(asked, id, grant, reply);
      });
  absl::StatusOr<std::variant<Grant, Deferred>> answer =
      asked.device.Allocate(asked.session, call, request);
  if (answer.ok() && std::holds_alternative<Deferred>(*answer)) {
    // The event may have come by now; then the call has ended, and this is dropped.
    reply.OnCancelled([asked, call] { asked.device.Cancel(asked.session, call); });
    return;
  }
  pending_.Remove(call);
  if (!answer.ok()) return AnswerAllocate(asked, request.request_id, answer.status(), reply);
  AnswerAllocate(asked, request.request_id, std::get<Grant>(*std::move(answer)), reply);
}

void MemoryBrokerService::AnswerAllocate(const Asked& asked, RequestId request,
                                         const absl::StatusOr<Grant>& grant,
                                         const UnaryReply<v1::AllocateResponse>& reply) {
  if (!grant.ok()) return reply.Finish(Explain(grant.status(), asked.caller, asked.device));
  const v1::AllocateResponse response = AllocateMessage(*grant, asked.device.info());
  if (MayBeRepeated(request)) return reply.Finish(response);
  std::vector<BlockId> blocks;
  for (const GrantedBlock& block : grant->blocks) blocks.push_back(block.id);
  // Fails only if the session has ended, which gave the blocks back.
  reply.Finish(response, [asked, blocks = std::move(blocks)] {
    asked.device.Release(asked.session, blocks).IgnoreError();
  });
}

void MemoryBrokerService::Release(const Caller& caller, const v1::ReleaseRequest& request,
                                  UnaryReply<v1::ReleaseResponse> reply) {
  reply.Finish(DoRelease(caller, request));
}

absl::StatusOr<v1::ReleaseResponse> MemoryBrokerService::DoRelease(
    const Caller& caller, const v1::ReleaseRequest& request) {
  HB_ASSIGN_OR_RETURN(const Session session, FindClientSession(sessions_, caller));
  HB_ASSIGN_OR_RETURN(const ReleaseTarget target, ReleaseTargetOf(request));
  if (target.blocks.empty()) {
    HB_ASSIGN_OR_RETURN(DeviceBroker* const device, devices_.Named(DeviceIndexIn(request)));
    HB_RETURN_IF_ERROR(Explain(device->Undo(session.id, target.request), caller, *device));
    return v1::ReleaseResponse();
  }
  for (const BlockId block : target.blocks) {
    if (devices_.Of(block) != nullptr) continue;
    HB_RETURN_IF_ERROR(devices_.all().front()->Release(session.id, {block}));
  }
  HB_RETURN_IF_ERROR(CheckOneDevice(target.blocks));
  HB_RETURN_IF_ERROR(DeviceToAsk(devices_, target.blocks[0]).Release(session.id, target.blocks));
  return v1::ReleaseResponse();
}

void MemoryBrokerService::OpenSegment(const Caller& caller, const v1::OpenSegmentRequest& request,
                                      UnaryReply<v1::OpenSegmentResponse> reply) {
  const absl::StatusOr<Session> session = FindClientSession(sessions_, caller);
  if (!session.ok()) return reply.Finish(session.status());
  absl::StatusOr<OpenSegmentRequest> segment =
      OpenSegmentRequestOf(request, {clock_.Now(), caller.deadline});
  if (!segment.ok()) return reply.Finish(segment.status());
  const absl::StatusOr<DeviceBroker*> device = devices_.Named(DeviceIndexIn(request));
  if (!device.ok()) return reply.Finish(device.status());
  StartOpenSegment({caller, session->id, **device}, *std::move(segment), reply);
}

void MemoryBrokerService::StartOpenSegment(const Asked& asked, OpenSegmentRequest segment,
                                           const UnaryReply<v1::OpenSegmentResponse>& reply) {
  const CallId call =
      pending_.AddOpenSegment([this, asked, reply](absl::StatusOr<SegmentView> view) {
        AnswerOpenSegment(asked, view, reply);
      });
  absl::StatusOr<std::variant<SegmentView, Deferred>> answer =
      asked.device.OpenSegment(asked.session, call, std::move(segment));
  if (answer.ok() && std::holds_alternative<Deferred>(*answer)) {
    reply.OnCancelled([asked, call] { asked.device.Cancel(asked.session, call); });
    return;
  }
  pending_.Remove(call);
  if (!answer.ok()) return AnswerOpenSegment(asked, answer.status(), reply);
  AnswerOpenSegment(asked, std::get<SegmentView>(*std::move(answer)), reply);
}

void MemoryBrokerService::AnswerOpenSegment(const Asked& asked,
                                            const absl::StatusOr<SegmentView>& segment,
                                            const UnaryReply<v1::OpenSegmentResponse>& reply) {
  if (!segment.ok()) return reply.Finish(Explain(segment.status(), asked.caller, asked.device));
  // Attachments are counted, so this undoes this one only.
  reply.Finish(OpenSegmentMessage(*segment, asked.device.info()), [asked, id = segment->id] {
    asked.device.CloseSegment(asked.session, id).IgnoreError();
  });
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
  HB_RETURN_IF_ERROR(DeviceToAsk(devices_, segment).SealSegment(session.id, segment, checksum));
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
  HB_RETURN_IF_ERROR(DeviceToAsk(devices_, segment).CloseSegment(session.id, segment));
  return v1::CloseSegmentResponse();
}

}  // namespace heapbroker

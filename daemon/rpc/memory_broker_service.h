// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbroker.v1.MemoryBroker: each method checks and converts, asks the core
// once, and converts back.
#ifndef DAEMON_RPC_MEMORY_BROKER_SERVICE_H_
#define DAEMON_RPC_MEMORY_BROKER_SERVICE_H_

#include "daemon/core/device_broker.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/pending_calls.h"
#include "daemon/rpc/unary_call.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

// The life of an answer that comes later (Allocate, OpenSegment):
//
//   PendingCalls::Add ──▶ core ──▶ Grant at once ─────────────▶ Finish
//                           └────▶ Deferred ──▶ event ─────────▶ Finish
//                                     └─ client gone ─▶ Cancel ─▶ event, dropped
//
// Whatever is granted to a call that cannot be answered any more is given back
// at once: its client does not know of it and never would give it back.
//
// Thread-safe. No method blocks.
class MemoryBrokerService {
 public:
  // All must outlive the service and every event that the core delivers.
  // `pending` is the event sink of `broker`.
  MemoryBrokerService(const Sessions& sessions, DeviceBroker& broker, PendingCalls& pending);

  void Allocate(const Caller& caller, const v1::AllocateRequest& request,
                UnaryReply<v1::AllocateResponse> reply);
  void Release(const Caller& caller, const v1::ReleaseRequest& request,
               UnaryReply<v1::ReleaseResponse> reply);
  void OpenSegment(const Caller& caller, const v1::OpenSegmentRequest& request,
                   UnaryReply<v1::OpenSegmentResponse> reply);
  void SealSegment(const Caller& caller, const v1::SealSegmentRequest& request,
                   UnaryReply<v1::SealSegmentResponse> reply);
  void CloseSegment(const Caller& caller, const v1::CloseSegmentRequest& request,
                    UnaryReply<v1::CloseSegmentResponse> reply);

 private:
  absl::StatusOr<v1::ReleaseResponse> DoRelease(const Caller& caller,
                                                const v1::ReleaseRequest& request);
  absl::StatusOr<v1::SealSegmentResponse> DoSeal(const Caller& caller,
                                                 const v1::SealSegmentRequest& request);
  absl::StatusOr<v1::CloseSegmentResponse> DoClose(const Caller& caller,
                                                   const v1::CloseSegmentRequest& request);

  void StartAllocate(SessionId session, const std::vector<BlockRequest>& blocks,
                     const UnaryReply<v1::AllocateResponse>& reply);
  void StartOpenSegment(SessionId session, OpenSegmentRequest segment,
                        const UnaryReply<v1::OpenSegmentResponse>& reply);
  void AnswerAllocate(SessionId session, const absl::StatusOr<Grant>& grant,
                      const UnaryReply<v1::AllocateResponse>& reply);
  void AnswerOpenSegment(SessionId session, const absl::StatusOr<SegmentView>& segment,
                         const UnaryReply<v1::OpenSegmentResponse>& reply);

  const Sessions& sessions_;
  DeviceBroker& broker_;
  PendingCalls& pending_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_MEMORY_BROKER_SERVICE_H_

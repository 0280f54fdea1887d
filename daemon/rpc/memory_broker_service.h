// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbroker.v1.MemoryBroker: each method checks and converts, asks the core
// once, and converts back.
#ifndef DAEMON_RPC_MEMORY_BROKER_SERVICE_H_
#define DAEMON_RPC_MEMORY_BROKER_SERVICE_H_

#include <optional>

#include "common/base/clock.h"
#include "daemon/core/devices.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/bidi_call.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/pending_calls.h"
#include "daemon/rpc/unary_call.h"
#include "daemon/rpc/watch_streams.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

// The life of an answer that comes later (Allocate, OpenSegment):
//
//   PendingCalls::Add ──▶ core ──▶ Grant at once ─────────────▶ Finish
//                           └────▶ Deferred ──▶ event ─────────▶ Finish
//                                     └─ client gone ─▶ Cancel ─▶ event, dropped
//
// Whatever is granted to a call that cannot be answered any more is given back
// at once: its client does not know of it and never would give it back. Not so
// where the client gave the request an id under which it may repeat it: it repeats or
// undoes it by that, and a repetition may have been answered with the same grant.
//
// A client may have undone a request that it never repeats before it is handled here:
// each queue has several threads. Nothing was there to be undone then, and the grant
// finds the call ended.
//
// Thread-safe. No method blocks.
class MemoryBrokerService {
 public:
  using WatchReply = BidiReply<v1::WatchRequest, v1::WatchEvent>;

  // All must outlive the service and every event that the core delivers. The
  // devices' events come to `pending` and `watches`.
  MemoryBrokerService(const Sessions& sessions, const Devices& devices, PendingCalls& pending,
                      WatchStreams& watches, const Clock& clock);

  // Whether the caller may make any of the calls below; each asks once more, since the
  // session may end in between. Errors as FindClientSession.
  absl::Status Admit(const Caller& caller) const {
    return FindClientSession(sessions_, caller).status();
  }

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

  // Ends with OK when the client has said all that it has to say.
  void Watch(const Caller& caller, WatchReply reply);

 private:
  absl::StatusOr<v1::ReleaseResponse> DoRelease(const Caller& caller,
                                                const v1::ReleaseRequest& request);
  absl::StatusOr<v1::SealSegmentResponse> DoSeal(const Caller& caller,
                                                 const v1::SealSegmentRequest& request);
  absl::StatusOr<v1::CloseSegmentResponse> DoClose(const Caller& caller,
                                                   const v1::CloseSegmentRequest& request);

  // Who asked for what comes later, and where.
  struct Asked {
    Caller caller;
    SessionId session;
    DeviceBroker& device;
  };
  struct OpenWatch;

  void StartAllocate(const Asked& asked, const AllocateRequest& request,
                     const UnaryReply<v1::AllocateResponse>& reply);
  void StartOpenSegment(const Asked& asked, OpenSegmentRequest segment,
                        const UnaryReply<v1::OpenSegmentResponse>& reply);
  void AnswerAllocate(const Asked& asked, RequestId request, const absl::StatusOr<Grant>& grant,
                      const UnaryReply<v1::AllocateResponse>& reply);
  void AnswerOpenSegment(const Asked& asked, const absl::StatusOr<SegmentView>& segment,
                         const UnaryReply<v1::OpenSegmentResponse>& reply);

  // One message of a Watch; empty when the client has said all. An error ends it.
  absl::Status TakeReport(OpenWatch& watch,
                          const absl::StatusOr<std::optional<v1::WatchRequest>>& message);
  // The session listens no more and keeps nothing idle, unless it has another Watch.
  void EndWatch(OpenWatch& watch);

  // An error of `device` as the client can use it: with details, where it is one
  // of memory; and the core cannot tell a session that has ended from one that was
  // never let onto the device.
  absl::Status Explain(const absl::Status& status, const Caller& caller,
                       const DeviceBroker& device) const;

  const Sessions& sessions_;
  const Devices& devices_;
  PendingCalls& pending_;
  WatchStreams& watches_;
  const Clock& clock_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_MEMORY_BROKER_SERVICE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The core's events, each to where it belongs.
#ifndef DAEMON_RPC_EVENT_ROUTER_H_
#define DAEMON_RPC_EVENT_ROUTER_H_

#include "daemon/core/event_sink.h"
#include "daemon/rpc/pending_calls.h"
#include "daemon/rpc/watch_streams.h"

namespace heapbroker {

// The event sink of every device: answers go to the calls that wait for them, the
// rest to the session's Watch. Thread-safe.
class EventRouter final : public EventSink {
 public:
  // Both must outlive this.
  EventRouter(PendingCalls& pending, WatchStreams& watches)
      : pending_(pending), watches_(watches) {}

  void Deliver(SessionId session, Event event) override;

 private:
  PendingCalls& pending_;
  WatchStreams& watches_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_EVENT_ROUTER_H_

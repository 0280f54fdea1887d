// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The one way in which the core speaks first.
#ifndef DAEMON_CORE_EVENT_SINK_H_
#define DAEMON_CORE_EVENT_SINK_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/requests.h"

namespace heapbroker {

// Ends an Allocate that was answered with Deferred.
struct AllocateDone {
  CallId call;
  absl::StatusOr<Grant> grant;
};

// Ends an OpenSegment that was answered with Deferred.
struct OpenSegmentDone {
  CallId call;
  absl::StatusOr<SegmentView> segment;
};

// Others need memory: whatever the session keeps idle on the heap, up to `bytes`,
// is asked back, and what it was asked for before beside it, until that one's
// deadline. Ignoring it is no offence.
struct GiveBackWanted {
  uint32_t device = 0;
  uint32_t heap = 0;
  Bytes bytes;
  absl::Time deadline;
  absl::Time since = absl::InfinitePast();  // When it was asked for.
};

// A segment of the session's tenant is complete.
struct SegmentSealed {
  uint32_t device = 0;
  SegmentId segment;
  std::string name;
};

// The session is not known any more. Nothing comes after it but the ends of calls that
// the device was at work for. Each of its devices says so.
struct SessionGone {};

using Event =
    std::variant<AllocateDone, OpenSegmentDone, GiveBackWanted, SegmentSealed, SessionGone>;

// The first two answer a call; the others are told to whoever listens, and lost
// where nobody does.
//
// Implemented by the edges. Called with no lock held, from device threads and
// from any thread that calls the core, and therefore also from inside a call
// that the edge itself makes. Must not block. An event for a call that the edge
// has forgotten is dropped by it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Deliver(SessionId session, Event event) = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_EVENT_SINK_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The calls that the core answers later.
#ifndef DAEMON_RPC_PENDING_CALLS_H_
#define DAEMON_RPC_PENDING_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "daemon/core/event_sink.h"

namespace heapbroker {

// Brings the core's answers to the calls that wait for them. A call is entered
// before the core is asked, since the answer may come before the core returns,
// and stays until its answer has come, also when its client no longer waits: so
// no answer is ever unknown, and what it grants can be undone.
//
// Thread-safe; no handler is called under the mutex.
class PendingCalls {
 public:
  using AllocateHandler = absl::AnyInvocable<void(absl::StatusOr<Grant>) &&>;
  using OpenSegmentHandler = absl::AnyInvocable<void(absl::StatusOr<SegmentView>) &&>;

  // Enters a call under an id of its own. The handler runs when the answer comes,
  // on the core's thread; it must not block.
  CallId AddAllocate(AllocateHandler handler);
  CallId AddOpenSegment(OpenSegmentHandler handler);

  // The core answered at once; no event follows. The handler is dropped.
  void Remove(CallId call);

  // Answers of calls that are not here are dropped.
  void Deliver(AllocateDone done);
  void Deliver(OpenSegmentDone done);

  size_t size() const;

 private:
  using Handler = std::variant<AllocateHandler, OpenSegmentHandler>;

  CallId Add(Handler handler);
  // The handler, taken out; empty where there is none.
  std::optional<Handler> Take(CallId call);

  mutable Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<CallId, Handler> handlers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_PENDING_CALLS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/event_router.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"

namespace heapbroker {
namespace {

absl::Status SessionHasEnded() {
  return absl::UnauthenticatedError(
      "the session has ended, and its Watch with it; say hello again for a new one");
}

}  // namespace

void EventRouter::Deliver(SessionId session, Event event) {
  if (auto* done = std::get_if<AllocateDone>(&event)) return pending_.Deliver(std::move(*done));
  if (auto* done = std::get_if<OpenSegmentDone>(&event)) return pending_.Deliver(std::move(*done));
  if (auto* wanted = std::get_if<GiveBackWanted>(&event)) {
    return watches_.Deliver(session, *wanted);
  }
  if (auto* sealed = std::get_if<SegmentSealed>(&event)) {
    return watches_.Deliver(session, std::move(*sealed));
  }
  watches_.Finish(session, SessionHasEnded());
}

}  // namespace heapbroker

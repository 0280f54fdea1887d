// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/event_router.h"

#include <utility>
#include <variant>

namespace heapbroker {

void EventRouter::Deliver(SessionId session, Event event) {
  if (auto* done = std::get_if<AllocateDone>(&event)) return pending_.Deliver(std::move(*done));
  if (auto* done = std::get_if<OpenSegmentDone>(&event)) return pending_.Deliver(std::move(*done));
  if (auto* wanted = std::get_if<GiveBackWanted>(&event)) {
    return watches_.Deliver(session, *wanted);
  }
  watches_.Deliver(session, std::get<SegmentSealed>(std::move(event)));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Events in the order in which they came.
#ifndef TESTS_MODEL_EVENT_LOG_H_
#define TESTS_MODEL_EVENT_LOG_H_

#include <utility>
#include <vector>

#include "daemon/core/event_sink.h"

namespace heapbroker {

// For tests with one thread.
class EventLog final : public EventSink {
 public:
  void Deliver(SessionId session, Event event) override {
    events_.emplace_back(session, std::move(event));
  }
  std::vector<std::pair<SessionId, Event>> Take() { return std::exchange(events_, {}); }

 private:
  std::vector<std::pair<SessionId, Event>> events_;
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_EVENT_LOG_H_

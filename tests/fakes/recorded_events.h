// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// An event sink that keeps what it was told.
#ifndef TESTS_FAKES_RECORDED_EVENTS_H_
#define TESTS_FAKES_RECORDED_EVENTS_H_

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/event_sink.h"

namespace heapbroker {

// For tests with one thread. Each call may be told of once.
class RecordedEvents final : public EventSink {
 public:
  void Deliver(SessionId session, Event event) override {
    if (auto* done = std::get_if<AllocateDone>(&event)) {
      grants_.emplace(done->call, std::move(done->grant));
      ++count_;
    } else if (auto* opened = std::get_if<OpenSegmentDone>(&event)) {
      segments_.emplace(opened->call, std::move(opened->segment));
      ++count_;
    } else {
      told_.emplace_back(session, std::move(event));
    }
  }

  bool Has(CallId call) const { return grants_.contains(call) || segments_.contains(call); }
  // The call must have been told of.
  const absl::StatusOr<Grant>& grant(CallId call) const { return grants_.at(call); }
  const absl::StatusOr<SegmentView>& segment(CallId call) const { return segments_.at(call); }
  size_t count() const { return count_; }
  // What was told to sessions that had not asked, in order, since the last call.
  std::vector<std::pair<SessionId, Event>> TakeTold() { return std::exchange(told_, {}); }
  // Calls told of; less than count() where one was told of twice.
  size_t distinct() const { return grants_.size() + segments_.size(); }

 private:
  std::map<CallId, absl::StatusOr<Grant>> grants_;
  std::map<CallId, absl::StatusOr<SegmentView>> segments_;
  std::vector<std::pair<SessionId, Event>> told_;
  size_t count_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_FAKES_RECORDED_EVENTS_H_

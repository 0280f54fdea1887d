// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Random requests that wait, on a real core and on the queue's model, side by side.
#ifndef TESTS_MODEL_QUEUE_TRACE_H_
#define TESTS_MODEL_QUEUE_TRACE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/model/event_log.h"
#include "tests/model/queue_model.h"

namespace heapbroker {

class QueueTrace {
 public:
  explicit QueueTrace(uint32_t seed);

  // One operation; after it both must say the same.
  void Step();

  // How much there was to say.
  struct Seen {
    uint64_t grants = 0, waited = 0, refused = 0, repeated = 0, asks = 0;
  };
  const Seen& seen() const { return seen_; }
  const std::string& setting() const { return text_; }

 private:
  struct Session {
    TenantId tenant{0};
    std::map<BlockId, QueueModel::Need> held;
  };

  uint32_t Draw(uint32_t below) {
    return std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
  }
  bool OneIn(uint32_t n) { return Draw(n) == 0; }
  bool HasOneHeap() const { return rules_.heaps.size() == 1; }
  SessionId AnySession();
  Bytes HeldOn(const Session& session, uint32_t heap) const;

  void Connect();
  void Allocate();
  void Repeat();
  void Release();
  void Cancel();
  void Disconnect();
  void Report();
  void PassTime();
  void DrawTerms(QueueModel::Request& request);
  AllocateRequest AskOf(const QueueModel::Request& request);

  // Does it, then has the device do all that follows.
  void Do(const std::function<void()>& operation);
  void Hear(CallId call, const absl::StatusOr<Grant>& grant);
  void Compare();

  std::mt19937 random_;
  QueueRules rules_;
  std::string text_;
  std::unique_ptr<QueueModel> model_;
  std::unique_ptr<SimulatedDevice> device_;
  FakeClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  EventLog events_;
  std::unique_ptr<DeviceBroker> broker_;
  std::map<SessionId, Session> sessions_;
  std::map<CallId, QueueModel::Request> requests_;  // Not answered yet.
  std::map<CallId, RequestId> ids_;
  std::map<CallId, absl::StatusCode> answers_;
  std::multimap<SessionId, Bytes> asks_;
  absl::Time due_ = absl::InfiniteFuture();
  uint64_t last_session_ = 0;
  uint64_t last_call_ = 0;
  Seen seen_;
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_QUEUE_TRACE_H_

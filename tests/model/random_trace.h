// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Random operations on a real core and on the reference model, side by side.
#ifndef TESTS_MODEL_RANDOM_TRACE_H_
#define TESTS_MODEL_RANDOM_TRACE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/model/event_log.h"
#include "tests/model/reference_model.h"
#include "tests/model/trace_setting.h"
#include "tests/model/watched_device.h"

namespace heapbroker {

class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed);

  // One operation, and every check after it.
  void Step();
  // Everybody leaves; nothing may remain.
  void End();

  const ReferenceModel& model() const { return model_; }
  const std::string& setting() const { return setting_.text; }

 private:
  uint32_t Draw(uint32_t below) {
    return std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
  }
  bool OneIn(uint32_t n) { return Draw(n) == 0; }
  // Of an open session, but now and then of one that has ended or never was.
  SessionId AnySession();
  Bytes DrawSize();
  MemoryWish DrawWish();
  BlockRequest DrawBlock();
  AllocateRequest DrawRequest(SessionId session);
  std::optional<absl::Time> DrawDeadline();
  absl::Time DrawAnswerBy(const std::optional<absl::Time>& wait_until);

  void Operate();
  void Connect();
  void Disconnect();
  void Allocate();
  void Release();
  void Undo();
  void Open();
  void SealOrClose();
  void Cancel();
  void Report();
  void Trim();
  void PassTime();
  void ChangeDriver();
  void Settle();

  void Lease(CallId call, const Grant& grant, bool at_once);
  void Attach(CallId call, SessionId session, const SegmentView& view);
  void Hear();
  void Check();
  CallId NewCall() { return CallId(++last_call_); }

  std::mt19937 random_;
  const TraceSetting setting_;
  const uint32_t patience_;  // Of ten requests, how many may wait.
  ReferenceModel model_;
  SimulatedDevice simulated_;
  WatchedDevice device_;
  FakeClock clock_;
  FakeAlarm alarm_;
  ManualExecutor executor_;
  EventLog events_;
  DeviceBroker broker_;
  std::vector<SessionId> sessions_;
  uint64_t last_session_ = 0;
  uint64_t last_call_ = 0;
  uint64_t last_request_ = 0;
  bool filled_ = false;  // Since the last Check: a job that fills has run.
  bool ticked_ = false;  // Likewise: the time was looked at.
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_RANDOM_TRACE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Recordings for tests.
#ifndef TESTS_UNIT_TRACE_TRACES_H_
#define TESTS_UNIT_TRACE_TRACES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/device_broker.h"
#include "daemon/core/simulated_device.h"
#include "daemon/trace/recorder.h"
#include "daemon/trace/trace.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"

namespace heapbroker {

inline constexpr TenantId kAlice{1001};
inline constexpr TenantId kBob{1002};

// The simulated device with a budget.
TracedDevice TracedDeviceOf(Bytes budget);
TraceStart StartOf(std::vector<TracedDevice> devices);

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// Ends the test where it cannot be written.
void WriteTrace(const std::string& path, const TraceStart& start,
                const std::vector<TracedTurn>& turns, const std::vector<DeviceStats>& stats);

// A broker whose turns are kept as it tells of them. For one thread.
class TracedBroker final : public EventSink, public DeviceObserver {
 public:
  explicit TracedBroker(const TracedDevice& device);
  ~TracedBroker() override { executor_.RunAll(); }

  void AddSession(SessionId session, TenantId tenant);
  void EndSession(SessionId session) { broker_.EndSession(session); }
  // The call may wait for an hour.
  CallId Allocate(SessionId session, const std::vector<Bytes>& sizes);
  CallId AllocateZeroed(SessionId session, const std::vector<Bytes>& sizes);
  void Release(SessionId session, const std::vector<BlockId>& blocks);
  CallId OpenSegment(SessionId session, const std::string& name, Bytes size);
  void Seal(SessionId session, SegmentId segment);
  void Close(SessionId session, SegmentId segment);
  void Cancel(SessionId session, CallId call) { broker_.Cancel(session, call); }
  // False where there is no such job. An allocation takes 50 us.
  bool RunAllocation() { return executor_.RunAllocation(); }
  bool RunFree() { return executor_.RunFree(); }
  void RunAll() { executor_.RunAll(); }
  // Ticks where the broker wanted that by now.
  void Advance(absl::Duration by);

  // What the call got; null where it still waits.
  const CallAnswered* Answer(CallId call) const;

  SimulatedDevice& device() { return device_; }
  DeviceStats Stats() const { return broker_.Stats(); }
  const std::vector<TracedTurn>& turns() const { return turns_; }

  void Deliver(SessionId, Event) override {}
  bool WantsTurns() const override { return true; }
  void OnTurn(RecordedTurn turn) override;
  void OnWarning(std::string) override {}

 private:
  CallId Allocate(SessionId session, AllocateRequest request);

  FakeClock clock_;
  absl::Time due_ = absl::InfiniteFuture();
  FakeAlarm alarm_;
  ManualExecutor executor_;
  SimulatedDevice device_;
  DeviceBroker broker_;
  std::vector<TracedTurn> turns_;
  std::map<CallId, CallAnswered> answers_;
  uint64_t last_call_ = 0;
};

// Sessions that come, allocate, release and go at random, with jobs that end at
// random times in between.
void LiveAtRandom(TracedBroker& broker, uint32_t seed, int steps);

}  // namespace heapbroker
#endif  // TESTS_UNIT_TRACE_TRACES_H_

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

// A broker whose turns are written down as they happen. For one thread.
class TracedBroker final : public EventSink, public DeviceMemory {
 public:
  explicit TracedBroker(const TracedDevice& device);
  ~TracedBroker() override { executor_.RunAll(); }

  void AddSession(SessionId session, TenantId tenant);
  void EndSession(SessionId session);
  CallId Allocate(SessionId session, const std::vector<Bytes>& sizes);
  void Release(SessionId session, const std::vector<BlockId>& blocks);
  CallId OpenSegment(SessionId session, const std::string& name, Bytes size);
  void Seal(SessionId session, SegmentId segment);
  void Close(SessionId session, SegmentId segment);
  void Cancel(SessionId session, CallId call);
  // False where there is no such job.
  bool RunAllocation();
  bool RunFree();
  void RunAll();

  // What the call got; null where it still waits.
  const CallAnswered* Answer(CallId call) const;

  SimulatedDevice& device() { return device_; }
  void Advance(absl::Duration by) { clock_.Advance(by); }
  absl::Time now() const { return clock_.Now(); }
  DeviceStats Stats() const { return broker_.Stats(); }
  const std::vector<TracedTurn>& turns() const { return turns_; }

  void Deliver(SessionId session, Event event) override;
  const DeviceInfo& info() const override { return device_.info(); }
  absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) override;
  absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class, Bytes allocation_size) override;
  absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) override;
  std::vector<HeapReport> ReadHeaps() override { return device_.ReadHeaps(); }
  void Free(DeviceAllocationId id) override { device_.Free(id); }

 private:
  void Note(Turn turn);
  void NoteAnswer(CallId call, const absl::StatusOr<Grant>& grant);
  void NoteAnswer(CallId call, const absl::StatusOr<SegmentView>& segment);

  SimulatedDevice device_;
  ManualExecutor executor_;
  FakeClock clock_;
  FakeAlarm alarm_;
  DeviceBroker broker_;
  std::vector<TracedTurn> turns_;
  std::map<CallId, CallAnswered> answers_;
  JobFilled job_;                        // That runs.
  std::vector<CallAnswered> meanwhile_;  // Answers that its end brought.
  bool in_job_ = false;
  uint64_t last_call_ = 0;
};

// Sessions that come, allocate, release and go at random, with jobs that end at
// random times in between.
void LiveAtRandom(TracedBroker& broker, uint32_t seed, int steps);

}  // namespace heapbroker
#endif  // TESTS_UNIT_TRACE_TRACES_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a broker works with in a replay: all of it does what the recording says.
#ifndef DAEMON_TRACE_REPLAY_PORTS_H_
#define DAEMON_TRACE_REPLAY_PORTS_H_

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "daemon/core/alarm.h"
#include "daemon/core/device_executor.h"
#include "daemon/core/device_observer.h"
#include "daemon/core/event_sink.h"
#include "daemon/core/simulated_device.h"
#include "daemon/trace/size_model.h"

namespace heapbroker {

// All of these are for one thread.

class ReplayClock final : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  // Time never runs backwards, whatever a recording says.
  void Set(absl::Time time) { now_ = std::max(now_, time); }

 private:
  absl::Time now_ = absl::InfinitePast();
};

class ReplayAlarm final : public Alarm {
 public:
  void WakeBy(absl::Time time) override { due_ = std::min(due_, time); }
  absl::Time due() const { return due_; }
  void Reset() { due_ = absl::InfiniteFuture(); }

 private:
  absl::Time due_ = absl::InfiniteFuture();
};

// Two queues, as the device's two threads have; a job runs when it is told to, all of it
// or up to its next decision.
class ReplayExecutor final : public DeviceExecutor {
 public:
  enum class Steps { kWholeJobs, kDecisions };
  ReplayExecutor(const Clock& clock, Steps steps) : clock_(clock), steps_(steps) {}

  bool PausesAtDecisions() const override { return steps_ == Steps::kDecisions; }

  void PostAllocation(DeviceJob job) override { Post(allocations_, std::move(job)); }
  void PostFree(DeviceJob job) override { Post(frees_, std::move(job)); }

  // The oldest job of the queue; false where there is none.
  bool RunAllocation() { return RunOne(allocations_, absl::InfiniteFuture()); }
  bool RunFree() { return RunOne(frees_, absl::InfiniteFuture()); }
  // One of either that was posted by then; false where there is none.
  bool RunPostedBy(absl::Time time) { return RunOne(frees_, time) || RunOne(allocations_, time); }

 private:
  struct Posted {
    absl::Time time;
    DeviceJob job;
  };

  void Post(std::deque<Posted>& jobs, DeviceJob job) {
    jobs.push_back({clock_.Now(), std::move(job)});
  }
  static bool RunOne(std::deque<Posted>& jobs, absl::Time posted_by);

  const Clock& clock_;
  const Steps steps_;
  std::deque<Posted> allocations_;
  std::deque<Posted> frees_;
};

// Keeps events until they are taken.
class ReplayEvents final : public EventSink {
 public:
  void Deliver(SessionId, Event event) override { events_.push_back(std::move(event)); }
  std::vector<Event> Take() { return std::exchange(events_, {}); }

 private:
  std::vector<Event> events_;
};

// The simulated device with the sizes and the failures of the recorded one: those
// of the job that runs now where it is the recorded one, else what the model says.
class ReplayDevice final : public DeviceMemory {
 public:
  ReplayDevice(DeviceInfo info, SizeModel& sizes) : device_(std::move(info)), sizes_(sizes) {}

  const DeviceInfo& info() const override { return device_.info(); }
  absl::StatusOr<Bytes> RequiredSize(BlockClass block_class, Bytes size) override;
  absl::StatusOr<DeviceAllocation> Allocate(BlockClass block_class, Bytes allocation_size) override;
  absl::Status Clear(BlockClass block_class, const DeviceAllocation& allocation) override;
  // The recording says when what was read.
  std::vector<HeapReport> ReadHeaps() override { return {}; }
  void Free(DeviceAllocationId id) override { device_.Free(id); }

  // Whether it was asked to make or clear anything since the last call of this.
  bool TakeWorked() { return std::exchange(worked_, false); }
  // The next job does this; the model learns from it.
  void Follow(const JobFilled& job);
  // It has. False where it was something else than was recorded.
  bool EndFollowing();

  SimulatedDevice::Counts counts() const { return device_.counts(); }
  // Of all allocations that were ever made.
  double allocated_bytes() const { return allocated_bytes_; }

 private:
  // What the recorded device said to the next question; null where that is not known.
  const DeviceAnswer* NextAnswer();

  SimulatedDevice device_;
  SizeModel& sizes_;
  const JobFilled* job_ = nullptr;
  size_t asked_ = 0;  // Of its questions.
  bool differs_ = false;
  bool worked_ = false;
  double allocated_bytes_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_TRACE_REPLAY_PORTS_H_

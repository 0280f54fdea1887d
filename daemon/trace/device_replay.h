// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// One recorded device, lived through again.
#ifndef DAEMON_TRACE_DEVICE_REPLAY_H_
#define DAEMON_TRACE_DEVICE_REPLAY_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/device_broker.h"
#include "daemon/trace/replay_ports.h"
#include "daemon/trace/size_model.h"
#include "daemon/trace/trace.h"

namespace heapbroker {

// How a replay stands to the recording.
enum class Fidelity {
  // The configuration is the recorded one, so every decision should be: time passes
  // for the broker and the device fails exactly where they did. The models learn.
  kExact,
  // Decisions differ, and the recording says only what clients asked for.
  kEstimate,
};

// What a configuration makes of a recording, on one device.
struct ReplayFigures {
  uint64_t granted_blocks = 0;  // Leases' and segments'.
  double granted_bytes = 0;     // As allocated.
  uint64_t hits = 0;
  Bytes peak;           // Most bytes that the device had allocated at one time.
  Bytes peak_rounding;  // Most bytes of leased blocks beyond what was asked for.
  uint64_t refusals = 0;
  uint64_t allocations = 0;  // Calls of the device that succeeded.
  double allocated_bytes = 0;
  uint64_t frees = 0;
};

// The real core over a simulated device, called as the recording says.
//
// Jobs wait in two queues, and the next of a queue runs where the recording has the end
// of one; of an estimate also when an answer is needed that depends on it, and a
// millisecond after it was posted at the latest. Of an exact replay each decision of a job
// falls where it fell, with whatever happened in between. Ids of the recording stand for
// what the replay got for the same call. Of what the replay did not get, nothing is given
// back; what it got and the recording did not is given back at once, for no client ever
// had it.
//
// For one thread.
class DeviceReplay {
 public:
  // `sizes` and `times` must outlive this.
  DeviceReplay(const DeviceInfo& device, const LedgerOptions& options, Fidelity fidelity,
               SizeModel& sizes, TimeModel& times);
  DeviceReplay(const DeviceReplay&) = delete;
  DeviceReplay& operator=(const DeviceReplay&) = delete;
  // Finishes, as the broker needs it.
  ~DeviceReplay();

  void Apply(const RecordedTurn& turn);

  // After the last turn: ends the jobs that are left. Figures are complete then.
  void Finish();

  DeviceStats Stats() const { return broker_.Stats(); }
  ReplayFigures Figures() const;

  // kExact: where the replay did something else than the recording, first of all.
  const std::optional<std::string>& difference() const { return difference_; }

 private:
  // A call until both the recording and the replay have answered it.
  struct Call {
    SessionId session;
    bool answered = false;
    absl::StatusCode code = absl::StatusCode::kOk;
    std::vector<GrantedBlock> blocks;
    SegmentId segment;
    std::optional<CallAnswered> recorded;
  };
  // A lease of the replay's.
  struct Held {
    SessionId session;
    Bytes rounding;
    BlockId recorded;
  };

  void Do(const SessionAdded& turn);
  void Do(const SessionEnded& turn);
  void Do(const AllocateAsked& turn);
  void Do(const BlocksReleased& turn);
  void Do(const RequestUndone& turn);
  void Do(const SegmentOpened& turn);
  void Do(const SegmentWasSealed& turn);
  void Do(const SegmentClosed& turn);
  void Do(const CallCancelled& turn);
  void Do(const IdleReported& turn);
  void Do(const HeapsRead& turn);
  void Do(const Trimmed& turn);
  void Do(const Ticked& turn);
  void Do(const JobFilled& turn);
  void Do(const JobFreed& turn);
  void Do(const CallAnswered& turn);

  void PassTime(absl::Time time);
  void Begin(CallId id, SessionId session);
  void Answer(CallId id, const absl::StatusOr<Grant>& grant);
  void Answer(CallId id, const absl::StatusOr<SegmentView>& segment);
  void TakeEvents();
  void Match(CallId id, Call& call);
  void MatchBlocks(const Call& call);
  void GiveBack(const Call& call);
  void WaitForAnswers(SessionId session);
  bool RunSomeJob();
  bool RunFill();
  void Hold(SessionId session, const GrantedBlock& block);
  void LetGo(BlockId block);
  void Differ(std::string what);

  const Fidelity fidelity_;
  TimeModel& times_;
  ReplayClock clock_;
  ReplayAlarm alarm_;
  ReplayExecutor executor_;
  ReplayEvents events_;
  ReplayDevice device_;
  DeviceBroker broker_;

  absl::flat_hash_map<CallId, Call> calls_;
  absl::flat_hash_map<SessionId, std::set<CallId>> open_calls_;  // Not answered by the replay.
  absl::flat_hash_map<BlockId, Held> held_;
  absl::flat_hash_map<SessionId, absl::flat_hash_set<BlockId>> held_by_;
  absl::flat_hash_map<BlockId, BlockId> blocks_;  // Recorded, and what stands for it.
  absl::flat_hash_map<SegmentId, SegmentId> segments_;
  Bytes rounding_;
  ReplayFigures figures_;
  // Of the recorded job that is not over.
  struct JobSoFar {
    uint64_t allocations = 0;
    double bytes = 0;
    absl::Duration took;
    bool failed = false;
  };
  JobSoFar job_;
  uint64_t sequence_ = 0;
  std::optional<std::string> difference_;
};

}  // namespace heapbroker
#endif  // DAEMON_TRACE_DEVICE_REPLAY_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/device_replay.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

// How often the broker may ask to be called at the same time before the replay
// takes it that it would never end.
constexpr int kMostTicksAtATime = 1000;

// How long a job takes at most where the recording has none in its place.
constexpr absl::Duration kJobTime = absl::Milliseconds(1);

}  // namespace

DeviceReplay::DeviceReplay(const DeviceInfo& device, const LedgerOptions& options,
                           Fidelity fidelity, SizeModel& sizes, TimeModel& times)
    : fidelity_(fidelity),
      times_(times),
      executor_(clock_, fidelity == Fidelity::kExact ? ReplayExecutor::Steps::kDecisions
                                                     : ReplayExecutor::Steps::kWholeJobs),
      device_(device, sizes),
      broker_(options, BrokerPorts{device_, executor_, events_, clock_, alarm_}) {}

DeviceReplay::~DeviceReplay() { Finish(); }

void DeviceReplay::Finish() {
  while (RunSomeJob()) TakeEvents();
}

void DeviceReplay::Apply(const RecordedTurn& turn) {
  sequence_ = turn.sequence;
  if (fidelity_ == Fidelity::kEstimate) PassTime(turn.time);
  clock_.Set(turn.time);
  std::visit([this](const auto& one) { Do(one); }, turn.turn);
  TakeEvents();
}

void DeviceReplay::PassTime(absl::Time time) {
  while (executor_.RunPostedBy(time - kJobTime)) TakeEvents();
  for (int ticks = 0; alarm_.due() <= time && ticks < kMostTicksAtATime; ++ticks) {
    clock_.Set(alarm_.due());
    alarm_.Reset();
    broker_.Tick();
    TakeEvents();
  }
  while (executor_.RunPostedBy(time - kJobTime)) TakeEvents();
}

void DeviceReplay::Do(const SessionAdded& turn) {
  // A refused session is refused here too, and has nothing afterwards.
  broker_.AddSession(turn.session, turn.tenant).IgnoreError();
}

void DeviceReplay::Do(const SessionEnded& turn) {
  broker_.EndSession(turn.session);
  if (const auto held = held_by_.extract(turn.session)) {
    for (const BlockId block : held.mapped()) LetGo(block);
  }
}

void DeviceReplay::Do(const AllocateAsked& turn) {
  Begin(turn.call, turn.session);
  const auto outcome = broker_.Allocate(turn.session, turn.call, turn.request);
  if (!outcome.ok()) {
    Answer(turn.call, absl::StatusOr<Grant>(outcome.status()));
  } else if (const auto* grant = std::get_if<Grant>(&*outcome)) {
    Answer(turn.call, absl::StatusOr<Grant>(*grant));
  }
}

void DeviceReplay::Do(const SegmentOpened& turn) {
  Begin(turn.call, turn.session);
  const auto outcome = broker_.OpenSegment(turn.session, turn.call, turn.request);
  if (!outcome.ok()) {
    Answer(turn.call, absl::StatusOr<SegmentView>(outcome.status()));
  } else if (const auto* segment = std::get_if<SegmentView>(&*outcome)) {
    Answer(turn.call, absl::StatusOr<SegmentView>(*segment));
  }
}

void DeviceReplay::Do(const BlocksReleased& turn) {
  WaitForAnswers(turn.session);
  std::vector<BlockId> blocks;
  for (const BlockId recorded : turn.blocks) {
    const auto found = blocks_.find(recorded);
    if (found != blocks_.end()) blocks.push_back(found->second);
  }
  if (blocks.size() < turn.blocks.size() && fidelity_ == Fidelity::kExact) return;
  if (blocks.empty() || !broker_.Release(turn.session, blocks).ok()) return;
  for (const BlockId block : blocks) LetGo(block);
}

void DeviceReplay::Do(const RequestUndone& turn) {
  WaitForAnswers(turn.session);
  if (!broker_.Undo(turn.session, turn.request).ok()) return;
  // The broker does not say which blocks these were: those that it has no more.
  const auto held = held_by_.find(turn.session);
  if (held == held_by_.end()) return;
  const std::vector<BlockId> before(held->second.begin(), held->second.end());
  for (const BlockId block : before) {
    if (!broker_.Fetch(turn.session, block).ok()) LetGo(block);
  }
}

void DeviceReplay::Do(const SegmentWasSealed& turn) {
  WaitForAnswers(turn.session);
  const auto found = segments_.find(turn.segment);
  if (found == segments_.end()) return;
  // What the contents are is of no meaning for where they are.
  broker_.SealSegment(turn.session, found->second, Checksum{}).IgnoreError();
}

void DeviceReplay::Do(const SegmentClosed& turn) {
  WaitForAnswers(turn.session);
  const auto found = segments_.find(turn.segment);
  if (found == segments_.end()) return;
  broker_.CloseSegment(turn.session, found->second).IgnoreError();
}

void DeviceReplay::Do(const CallCancelled& turn) { broker_.Cancel(turn.session, turn.call); }

void DeviceReplay::Do(const IdleReported& turn) {
  broker_.ReportIdle(turn.session, turn.reports).IgnoreError();
}

void DeviceReplay::Do(const HeapsRead& turn) {
  // A report is of every heap; a damaged recording may have another number.
  if (turn.reports.size() == device_.info().heaps.size()) broker_.UpdateHeaps(turn.reports);
}

void DeviceReplay::Do(const Trimmed& turn) {
  // Another configuration need not have that pool.
  broker_.Trim(turn.request).status().IgnoreError();
}

void DeviceReplay::Do(const Ticked&) {
  if (fidelity_ == Fidelity::kExact) broker_.Tick();
}

void DeviceReplay::Do(const JobFilled& turn) {
  if (fidelity_ == Fidelity::kEstimate) {
    if (turn.over) RunFill();
    return;
  }
  const uint64_t allocations = device_.counts().allocations;
  const double bytes = device_.allocated_bytes();
  device_.Follow(turn);
  const bool ran = RunFill();
  if (!device_.EndFollowing() || !ran) Differ("other allocations of the device");
  job_.allocations += device_.counts().allocations - allocations;
  job_.bytes += device_.allocated_bytes() - bytes;
  job_.took += turn.took;
  for (const DeviceAnswer& answer : turn.answers) {
    job_.failed |= answer.code != absl::StatusCode::kOk;
  }
  if (!turn.over) return;
  if (!job_.failed) times_.LearnAllocations(job_.allocations, job_.bytes, job_.took);
  job_ = {};
}

void DeviceReplay::Do(const JobFreed& turn) {
  if (fidelity_ == Fidelity::kExact) times_.LearnFree(turn.took);
  if (!executor_.RunFree()) Differ("nothing to free");
}

void DeviceReplay::Do(const CallAnswered& turn) {
  TakeEvents();
  auto found = calls_.find(turn.call);
  if (found == calls_.end()) return;
  found->second.recorded = turn;
  if (fidelity_ == Fidelity::kEstimate) {
    while (!found->second.answered && RunSomeJob()) {
      TakeEvents();
      found = calls_.find(turn.call);
      if (found == calls_.end()) return;
    }
    // Nobody waits for it any more.
    if (!found->second.answered && turn.code != absl::StatusCode::kOk) {
      broker_.Cancel(found->second.session, turn.call);
      return;
    }
  }
  if (found->second.answered) Match(turn.call, found->second);
}

void DeviceReplay::Begin(CallId id, SessionId session) {
  calls_[id] = Call{session, false, absl::StatusCode::kOk, {}, SegmentId(), std::nullopt};
  open_calls_[session].insert(id);
}

void DeviceReplay::Answer(CallId id, const absl::StatusOr<Grant>& grant) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  call.answered = true;
  call.code = grant.status().code();
  if (grant.ok()) {
    call.blocks = grant->blocks;
    for (const GrantedBlock& block : call.blocks) Hold(call.session, block);
  }
  open_calls_[call.session].erase(id);
  if (open_calls_[call.session].empty()) open_calls_.erase(call.session);
  if (call.recorded) Match(id, call);
}

void DeviceReplay::Answer(CallId id, const absl::StatusOr<SegmentView>& segment) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  call.answered = true;
  call.code = segment.status().code();
  if (segment.ok()) {
    call.segment = segment->id;
    // Its memory is new where the session fills it; others are attached to it.
    if (segment->writer) {
      for (const GrantedBlock& block : segment->blocks) {
        ++figures_.granted_blocks;
        figures_.granted_bytes += static_cast<double>(block.allocation_size.count());
      }
    }
  }
  open_calls_[call.session].erase(id);
  if (open_calls_[call.session].empty()) open_calls_.erase(call.session);
  if (call.recorded) Match(id, call);
}

void DeviceReplay::TakeEvents() {
  for (std::vector<Event> events = events_.Take(); !events.empty(); events = events_.Take()) {
    for (const Event& event : events) {
      if (const auto* done = std::get_if<AllocateDone>(&event)) Answer(done->call, done->grant);
      if (const auto* done = std::get_if<OpenSegmentDone>(&event)) {
        Answer(done->call, done->segment);
      }
    }
  }
}

// Erases the call: `call` is gone afterwards.
void DeviceReplay::Match(CallId id, Call& call) {
  const Call both = std::move(call);
  calls_.erase(id);
  const CallAnswered& recorded = *both.recorded;
  if (recorded.code != both.code || recorded.blocks.size() != both.blocks.size()) {
    // A segment's blocks are told by some recorders and not needed here.
    if (recorded.code != both.code || recorded.segment == SegmentId()) {
      Differ(absl::StrCat("call ", id.value(), " ended with ", absl::StatusCodeToString(both.code),
                          ", and in the recording with ", absl::StatusCodeToString(recorded.code)));
    }
  }
  if (both.code != absl::StatusCode::kOk) return;
  if (recorded.code != absl::StatusCode::kOk) {
    GiveBack(both);
    return;
  }
  if (both.segment != SegmentId()) segments_[recorded.segment] = both.segment;
  MatchBlocks(both);
}

void DeviceReplay::MatchBlocks(const Call& call) {
  const size_t count = std::min(call.blocks.size(), call.recorded->blocks.size());
  for (size_t i = 0; i < count; ++i) {
    const auto held = held_.find(call.blocks[i].id);
    if (held == held_.end()) continue;  // The session has ended meanwhile.
    held->second.recorded = call.recorded->blocks[i];
    blocks_[call.recorded->blocks[i]] = call.blocks[i].id;
  }
}

void DeviceReplay::GiveBack(const Call& call) {
  if (call.segment != SegmentId()) {
    broker_.CloseSegment(call.session, call.segment).IgnoreError();
    return;
  }
  std::vector<BlockId> blocks;
  for (const GrantedBlock& block : call.blocks) blocks.push_back(block.id);
  if (blocks.empty() || !broker_.Release(call.session, blocks).ok()) return;
  for (const BlockId block : blocks) LetGo(block);
}

void DeviceReplay::WaitForAnswers(SessionId session) {
  TakeEvents();
  if (fidelity_ == Fidelity::kExact) return;
  while (open_calls_.contains(session) && RunSomeJob()) TakeEvents();
}

// Jobs that only ask what the driver offers are none of those that were recorded.
bool DeviceReplay::RunFill() {
  device_.TakeWorked();
  while (executor_.RunAllocation()) {
    if (device_.TakeWorked()) return true;
  }
  return false;
}

bool DeviceReplay::RunSomeJob() { return executor_.RunFree() || executor_.RunAllocation(); }

void DeviceReplay::Hold(SessionId session, const GrantedBlock& block) {
  const Bytes rounding =
      block.allocation_size > block.size ? block.allocation_size - block.size : Bytes();
  // A repeated request gets the blocks that it holds already.
  if (!held_.emplace(block.id, Held{session, rounding, BlockId()}).second) return;
  held_by_[session].insert(block.id);
  ++figures_.granted_blocks;
  figures_.granted_bytes += static_cast<double>(block.allocation_size.count());
  rounding_ += rounding;
  figures_.peak_rounding = std::max(figures_.peak_rounding, rounding_);
}

void DeviceReplay::LetGo(BlockId block) {
  const auto found = held_.find(block);
  if (found == held_.end()) return;
  rounding_ -= found->second.rounding;
  blocks_.erase(found->second.recorded);
  const auto session = held_by_.find(found->second.session);
  if (session != held_by_.end()) {
    session->second.erase(block);
    if (session->second.empty()) held_by_.erase(session);
  }
  held_.erase(found);
}

void DeviceReplay::Differ(std::string what) {
  if (fidelity_ != Fidelity::kExact || difference_) return;
  difference_ = absl::StrCat("turn ", sequence_, ": ", what);
}

ReplayFigures DeviceReplay::Figures() const {
  ReplayFigures figures = figures_;
  const DeviceStats stats = broker_.Stats();
  for (const PoolStats& pool : stats.pools) figures.hits += pool.hits;
  figures.refusals = stats.requests.never_fit + stats.requests.limit_reached;
  const SimulatedDevice::Counts counts = device_.counts();
  figures.peak = counts.peak_bytes;
  figures.allocations = counts.allocations;
  figures.allocated_bytes = device_.allocated_bytes();
  figures.frees = counts.frees;
  return figures;
}

}  // namespace heapbroker

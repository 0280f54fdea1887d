// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/device_broker.h"

#include <iterator>
#include <utility>

namespace heapbroker {
namespace {

CallAnswered AnswerOf(CallId call, const Grant& grant) {
  CallAnswered answer{call, {}, {}};
  for (const GrantedBlock& block : grant.blocks) answer.blocks.push_back(block.id);
  return answer;
}

CallAnswered AnswerOf(CallId call, const SegmentView& view) {
  CallAnswered answer{call, {}, view.id};
  for (const GrantedBlock& block : view.blocks) answer.blocks.push_back(block.id);
  return answer;
}

template <typename Answer>
CallAnswered AnswerOf(CallId call, const absl::StatusOr<Answer>& answer) {
  if (answer.ok()) return AnswerOf(call, *answer);
  return {call, {}, {}, answer.status().code()};
}

}  // namespace

DeviceBroker::DeviceBroker(const LedgerOptions& options, const BrokerPorts& ports)
    : ports_(ports),
      records_turns_(ports.observer != nullptr && ports.observer->WantsTurns()),
      ledger_(ports.device.info(), options, ports.clock) {}

// One turn of the ledger: `decide` runs under the mutex, and what follows from it
// under none. `turn` makes the record of it, where somebody wants that.
template <typename MakeTurn, typename Function>
auto DeviceBroker::Decide(MakeTurn turn, Function decide, std::optional<CallId> call) {
  Effects effects;
  auto result = [&] {
    MutexLock lock(mutex_);
    if (records_turns_) Record(turn(), effects);
    auto outcome = decide(ledger_, effects);
    if (call && records_turns_) NoteAnswer(*call, outcome, effects);
    EndTurn(effects);
    return outcome;
  }();
  Perform(std::move(effects));
  return result;
}

absl::Status DeviceBroker::AddSession(SessionId session, TenantId tenant) {
  return Decide(
      [&] {
        return SessionAdded{session, tenant};
      },
      [&](DeviceLedger& ledger, Effects&) { return ledger.AddSession(session, tenant); });
}

void DeviceBroker::EndSession(SessionId session) {
  Decide([&] { return SessionEnded{session}; },
         [&](DeviceLedger& ledger, Effects& effects) {
           ledger.EndSession(session, effects);
           return absl::OkStatus();
         })
      .IgnoreError();
}

absl::StatusOr<std::variant<Grant, Deferred>> DeviceBroker::Allocate(
    SessionId session, CallId call, const AllocateRequest& request) {
  return Decide(
      [&] {
        return AllocateAsked{session, call, request};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.Allocate(session, call, request, effects);
      },
      call);
}

absl::Status DeviceBroker::Release(SessionId session, absl::Span<const BlockId> blocks) {
  return Decide(
      [&] {
        return BlocksReleased{session, {blocks.begin(), blocks.end()}};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.Release(session, blocks, effects);
      });
}

absl::Status DeviceBroker::Undo(SessionId session, RequestId request) {
  return Decide(
      [&] {
        return RequestUndone{session, request};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.Undo(session, request, effects);
      });
}

absl::StatusOr<FetchedBlock> DeviceBroker::Fetch(SessionId session, BlockId block) {
  MutexLock lock(mutex_);
  return ledger_.Fetch(session, block);
}

absl::StatusOr<std::variant<SegmentView, Deferred>> DeviceBroker::OpenSegment(
    SessionId session, CallId call, OpenSegmentRequest request) {
  return Decide(
      [&] {
        return SegmentOpened{session, call, request};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.OpenSegment(session, call, std::move(request), effects);
      },
      call);
}

absl::Status DeviceBroker::SealSegment(SessionId session, SegmentId segment, Checksum checksum) {
  return Decide(
      [&] {
        return SegmentWasSealed{session, segment};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.SealSegment(session, segment, checksum, effects);
      });
}

absl::Status DeviceBroker::CloseSegment(SessionId session, SegmentId segment) {
  return Decide(
      [&] {
        return SegmentClosed{session, segment};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.CloseSegment(session, segment, effects);
      });
}

void DeviceBroker::Cancel(SessionId session, CallId call) {
  Decide(
      [&] {
        return CallCancelled{session, call};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        ledger.Cancel(session, call, effects);
        return absl::OkStatus();
      })
      .IgnoreError();
}

absl::Status DeviceBroker::ReportIdle(SessionId session, absl::Span<const IdleReport> reports) {
  return Decide(
      [&] {
        return IdleReported{session, {reports.begin(), reports.end()}};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        return ledger.ReportIdle(session, reports, effects);
      });
}

absl::StatusOr<TrimResult> DeviceBroker::Trim(const TrimRequest& request) {
  return Decide(
      [&] { return Trimmed{request}; },
      [&](DeviceLedger& ledger, Effects& effects) { return ledger.Trim(request, effects); });
}

void DeviceBroker::Tick() {
  {
    MutexLock lock(mutex_);
    armed_ = absl::InfiniteFuture();
  }
  Decide([] { return Ticked{}; },
         [&](DeviceLedger& ledger, Effects& effects) {
           ledger.Tick(effects);
           return absl::OkStatus();
         })
      .IgnoreError();
}

void DeviceBroker::EvictEverything() {
  Decide(
      [] {
        return Trimmed{{std::nullopt, Bytes(), /*segments=*/true}};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        ledger.EvictEverything(effects);
        return absl::OkStatus();
      })
      .IgnoreError();
}

DeviceStats DeviceBroker::Stats() const {
  MutexLock lock(mutex_);
  return ledger_.Stats();
}

std::vector<SegmentStats> DeviceBroker::ListSegments() const {
  MutexLock lock(mutex_);
  return ledger_.ListSegments();
}

HolderStats DeviceBroker::Holdings(SessionId session) const {
  MutexLock lock(mutex_);
  return ledger_.Holdings(session);
}

std::vector<LeaseStats> DeviceBroker::ListLeases(BlockId after, size_t limit) const {
  MutexLock lock(mutex_);
  return ledger_.ListLeases(after, limit);
}

void DeviceBroker::Record(Turn turn, Effects& effects) {
  effects.turns.push_back({++last_turn_, ports_.clock.Now(), std::move(turn)});
}

// Nothing where the answer comes later.
template <typename Outcome>
void DeviceBroker::NoteAnswer(CallId call, const Outcome& outcome, Effects& effects) {
  if constexpr (requires { std::get_if<0>(&*outcome); }) {
    if (!outcome.ok()) {
      Record(CallAnswered{call, {}, {}, outcome.status().code()}, effects);
    } else if (const auto* answer = std::get_if<0>(&*outcome)) {
      Record(AnswerOf(call, *answer), effects);
    }
  }
}

// Before the mutex is released: what has to be known of the ledger as it is now.
void DeviceBroker::EndTurn(Effects& effects) {
  if (records_turns_) {
    for (const auto& [session, event] : effects.events) {
      if (const auto* done = std::get_if<AllocateDone>(&event)) {
        Record(AnswerOf(done->call, done->grant), effects);
      } else if (const auto* opened = std::get_if<OpenSegmentDone>(&event)) {
        Record(AnswerOf(opened->call, opened->segment), effects);
      }
    }
  }
  effects.frees = effects.free.size();
  std::move(effects.free.begin(), effects.free.end(), std::back_inserter(frees_));
  effects.fills = effects.fill.size();
  for (FillOrder& order : effects.fill) fills_.emplace_back(std::move(order));
  const absl::Time due = ledger_.NextDue();
  if (due >= armed_) return;
  armed_ = due;
  effects.wake_by = due;
}

void DeviceBroker::Perform(Effects effects) {
  for (size_t i = 0; i < effects.frees; ++i) ports_.executor.PostFree([this] { FreeNext(); });
  for (size_t i = 0; i < effects.fills; ++i) {
    ports_.executor.PostAllocation([this] { FillNext(); });
  }
  if (effects.read_heaps) ports_.executor.PostAllocation([this] { ReadHeaps(); });
  for (auto& [session, event] : effects.events) ports_.events.Deliver(session, std::move(event));
  if (effects.wake_by) ports_.alarm.WakeBy(*effects.wake_by);
  if (ports_.observer == nullptr) return;
  for (std::string& warning : effects.warnings) ports_.observer->OnWarning(std::move(warning));
  for (RecordedTurn& turn : effects.turns) ports_.observer->OnTurn(std::move(turn));
}

void DeviceBroker::FillNext() {
  FillJob job = [this] {
    MutexLock lock(mutex_);
    FillJob first = std::move(fills_.front());
    fills_.pop_front();
    return first;
  }();
  while (FillSome(job)) {
    if (!ports_.executor.PausesAtDecisions()) continue;
    {
      MutexLock lock(mutex_);
      fills_.push_front(std::move(job));
    }
    ports_.executor.PostAllocation([this] { FillNext(); });
    return;
  }
  ReadHeaps();
}

// Up to the next decision, and that. False where the job is over.
bool DeviceBroker::FillSome(FillJob& job) {
  const absl::Time begin = ports_.clock.Now();
  const std::optional<FillJob::Question> question = job.Work(ports_.device);
  JobFilled record{job.TakeAnswers(), ports_.clock.Now() - begin};
  return Decide([&] { return std::move(record); },
                [&](DeviceLedger& ledger, Effects& effects) {
                  if (question) {
                    job.Decided(ledger.AdjustReservation(job.order(), question->item,
                                                         question->needs, effects));
                  }
                  if (!job.over()) return true;
                  if (records_turns_) std::get<JobFilled>(effects.turns.back().turn).over = true;
                  ledger.EndFill(job.order(), job.TakeFilled(), effects);
                  return false;
                });
}

// What the driver offers changes with what others have: asked after the device has
// worked, and not too often.
void DeviceBroker::ReadHeaps() {
  constexpr absl::Duration kInterval = absl::Seconds(1);
  const absl::Time now = ports_.clock.Now();
  if (now - heaps_read_at_ < kInterval) return;
  heaps_read_at_ = now;
  std::vector<HeapReport> reports = ports_.device.ReadHeaps();
  if (!reports.empty()) UpdateHeaps(std::move(reports));
}

void DeviceBroker::UpdateHeaps(std::vector<HeapReport> reports) {
  Decide([&] { return HeapsRead{reports}; },
         [&](DeviceLedger& ledger, Effects& effects) {
           ledger.UpdateHeaps(reports, effects);
           return absl::OkStatus();
         })
      .IgnoreError();
}

void DeviceBroker::FreeNext() {
  Block block = [this] {
    MutexLock lock(mutex_);
    Block first = std::move(frees_.front());
    frees_.pop_front();
    return first;
  }();
  const absl::Time begin = ports_.clock.Now();
  // The descriptor first: what it refers to is gone after the next line.
  block.memory.exported.reset();
  ports_.device.Free(block.memory.id);
  Decide(
      [&] {
        return JobFreed{block.id, ports_.clock.Now() - begin};
      },
      [&](DeviceLedger& ledger, Effects& effects) {
        ledger.Freed(block, effects);
        return absl::OkStatus();
      })
      .IgnoreError();
}

}  // namespace heapbroker

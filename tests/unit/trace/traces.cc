// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trace/traces.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <utility>
#include <variant>

namespace heapbroker {

TracedDevice TracedDeviceOf(Bytes budget) {
  TracedDevice device;
  device.info = SimulatedDeviceInfo();
  device.options.admission.heaps = {HeapLimit{budget}};
  device.options.admission.count_limits = {{LimitKind::kMaxAllocationCount, 4000}};
  return device;
}

TraceStart StartOf(std::vector<TracedDevice> devices) {
  return {"0.0.test", FakeClock().Now(), "", std::move(devices)};
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void WriteTrace(const std::string& path, const TraceStart& start,
                const std::vector<TracedTurn>& turns, const std::vector<DeviceStats>& stats) {
  auto recorder = Recorder::Start(path, start, {GiB(1), GiB(1)}, [](const std::string& warning) {
    std::cerr << warning << "\n";
    std::abort();
  });
  if (!recorder.ok()) {
    std::cerr << recorder.status() << "\n";
    std::abort();
  }
  for (const TracedTurn& turn : turns) (*recorder)->Record(turn.device, turn.turn);
  (*recorder)->Finish(stats);
}

TracedBroker::TracedBroker(const TracedDevice& device)
    : device_(device.info),
      broker_(device.options, BrokerPorts{*this, executor_, *this, clock_, alarm_}) {}

void TracedBroker::Note(Turn turn) {
  turns_.push_back({0, {turns_.size() + 1, clock_.Now(), std::move(turn)}});
}

void TracedBroker::AddSession(SessionId session, TenantId tenant) {
  Note(SessionAdded{session, tenant});
  broker_.AddSession(session, tenant).IgnoreError();
}

void TracedBroker::EndSession(SessionId session) {
  Note(SessionEnded{session});
  broker_.EndSession(session);
}

CallId TracedBroker::Allocate(SessionId session, const std::vector<Bytes>& sizes) {
  AllocateAsked turn{session, CallId(++last_call_), {}};
  turn.request.wait_until = clock_.Now() + absl::Hours(1);
  for (const Bytes size : sizes) turn.request.blocks.emplace_back().size = size;
  Note(turn);
  const auto outcome = broker_.Allocate(session, turn.call, turn.request);
  if (!outcome.ok()) {
    NoteAnswer(turn.call, absl::StatusOr<Grant>(outcome.status()));
  } else if (const auto* grant = std::get_if<Grant>(&*outcome)) {
    NoteAnswer(turn.call, absl::StatusOr<Grant>(*grant));
  }
  return turn.call;
}

void TracedBroker::Release(SessionId session, const std::vector<BlockId>& blocks) {
  Note(BlocksReleased{session, blocks});
  broker_.Release(session, blocks).IgnoreError();
}

CallId TracedBroker::OpenSegment(SessionId session, const std::string& name, Bytes size) {
  SegmentOpened turn{session, CallId(++last_call_), {}};
  turn.request.name = name;
  turn.request.size = size;
  turn.request.wait_until = clock_.Now() + absl::Hours(1);
  Note(turn);
  const auto outcome = broker_.OpenSegment(session, turn.call, turn.request);
  if (!outcome.ok()) {
    NoteAnswer(turn.call, absl::StatusOr<SegmentView>(outcome.status()));
  } else if (const auto* segment = std::get_if<SegmentView>(&*outcome)) {
    NoteAnswer(turn.call, absl::StatusOr<SegmentView>(*segment));
  }
  return turn.call;
}

void TracedBroker::Seal(SessionId session, SegmentId segment) {
  Note(SegmentWasSealed{session, segment});
  broker_.SealSegment(session, segment, Checksum{1, 2}).IgnoreError();
}

void TracedBroker::Close(SessionId session, SegmentId segment) {
  Note(SegmentClosed{session, segment});
  broker_.CloseSegment(session, segment).IgnoreError();
}

void TracedBroker::Cancel(SessionId session, CallId call) {
  Note(CallCancelled{session, call});
  broker_.Cancel(session, call);
}

bool TracedBroker::RunAllocation() {
  job_ = {};
  in_job_ = true;
  const bool ran = executor_.RunAllocation();
  in_job_ = false;
  if (ran) {
    job_.took = absl::Microseconds(50);
    Note(job_);
  }
  for (const CallAnswered& answer : std::exchange(meanwhile_, {})) Note(answer);
  return ran;
}

bool TracedBroker::RunFree() {
  in_job_ = true;
  const bool ran = executor_.RunFree();
  in_job_ = false;
  if (ran) Note(JobFreed{BlockId(), absl::Microseconds(10)});
  for (const CallAnswered& answer : std::exchange(meanwhile_, {})) Note(answer);
  return ran;
}

void TracedBroker::RunAll() {
  while (RunFree() || RunAllocation()) {
  }
}

const CallAnswered* TracedBroker::Answer(CallId call) const {
  const auto found = answers_.find(call);
  return found == answers_.end() ? nullptr : &found->second;
}

void TracedBroker::NoteAnswer(CallId call, const absl::StatusOr<Grant>& grant) {
  CallAnswered answer;
  answer.call = call;
  answer.code = grant.status().code();
  if (grant.ok()) {
    for (const GrantedBlock& block : grant->blocks) answer.blocks.push_back(block.id);
  }
  answers_[call] = answer;
  in_job_ ? meanwhile_.push_back(answer) : Note(answer);
}

void TracedBroker::NoteAnswer(CallId call, const absl::StatusOr<SegmentView>& segment) {
  CallAnswered answer;
  answer.call = call;
  answer.code = segment.status().code();
  if (segment.ok()) {
    answer.segment = segment->id;
    for (const GrantedBlock& block : segment->blocks) answer.blocks.push_back(block.id);
  }
  answers_[call] = answer;
  in_job_ ? meanwhile_.push_back(answer) : Note(answer);
}

void TracedBroker::Deliver(SessionId, Event event) {
  if (const auto* done = std::get_if<AllocateDone>(&event)) NoteAnswer(done->call, done->grant);
  if (const auto* done = std::get_if<OpenSegmentDone>(&event)) {
    NoteAnswer(done->call, done->segment);
  }
}

absl::StatusOr<Bytes> TracedBroker::RequiredSize(BlockClass block_class, Bytes size) {
  absl::StatusOr<Bytes> required = device_.RequiredSize(block_class, size);
  if (required.ok()) {
    job_.required.push_back(*required);
  } else {
    job_.code = required.status().code();
  }
  return required;
}

absl::StatusOr<DeviceAllocation> TracedBroker::Allocate(BlockClass block_class,
                                                        Bytes allocation_size) {
  absl::StatusOr<DeviceAllocation> made = device_.Allocate(block_class, allocation_size);
  if (!made.ok()) job_.code = made.status().code();
  return made;
}

absl::Status TracedBroker::Clear(BlockClass block_class, const DeviceAllocation& allocation) {
  const absl::Status cleared = device_.Clear(block_class, allocation);
  if (!cleared.ok()) job_.code = cleared.code();
  return cleared;
}

namespace {

// What a client at random knows.
struct RandomSession {
  SessionId id;
  std::vector<CallId> calls;
};

Bytes RandomSize(std::mt19937& random) {
  // Some sizes come again and again, as a program's do.
  if (random() % 2 == 0) return MiB(1 + random() % 4);
  return Bytes(1 + random() % MiB(24).count());
}

void StepAtRandom(TracedBroker& broker, RandomSession& session, std::mt19937& random) {
  switch (random() % 8) {
    case 0:
    case 1:
    case 2: {
      std::vector<Bytes> sizes(1 + random() % 3);
      for (Bytes& size : sizes) size = RandomSize(random);
      session.calls.push_back(broker.Allocate(session.id, sizes));
      return;
    }
    case 3:
      session.calls.push_back(broker.OpenSegment(
          session.id, std::string(1, static_cast<char>('a' + random() % 4)), MiB(5)));
      return;
    case 4:
      if (!session.calls.empty()) {
        broker.Cancel(session.id, session.calls[random() % session.calls.size()]);
      }
      return;
    default:
      break;
  }
  if (session.calls.empty()) return;
  const size_t at = random() % session.calls.size();
  const CallAnswered* const answer = broker.Answer(session.calls[at]);
  if (answer == nullptr) return;
  const CallAnswered copy = *answer;
  if (copy.segment != SegmentId() && random() % 2 == 0) {
    broker.Seal(session.id, copy.segment);
    return;
  }
  session.calls.erase(session.calls.begin() + static_cast<std::ptrdiff_t>(at));
  if (copy.segment != SegmentId()) {
    broker.Close(session.id, copy.segment);
  } else if (copy.code == absl::StatusCode::kOk) {
    broker.Release(session.id, copy.blocks);
  }
}

}  // namespace

void LiveAtRandom(TracedBroker& broker, uint32_t seed, int steps) {
  std::mt19937 random(seed);
  std::vector<RandomSession> sessions;
  uint64_t last_session = 0;
  for (int i = 0; i < steps; ++i) {
    broker.Advance(absl::Milliseconds(random() % 20));
    if (sessions.size() < 3 || random() % 200 == 0) {
      const SessionId id(++last_session);
      broker.AddSession(id, random() % 2 == 0 ? kAlice : kBob);
      sessions.push_back({id, {}});
    }
    const size_t at = random() % sessions.size();
    StepAtRandom(broker, sessions[at], random);
    if (random() % 2 == 0) broker.RunAllocation();
    if (random() % 2 == 0) broker.RunFree();
    if (random() % 300 == 0) {
      broker.EndSession(sessions[at].id);
      sessions.erase(sessions.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

}  // namespace heapbroker

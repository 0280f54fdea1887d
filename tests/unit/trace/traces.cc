// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trace/traces.h"

#include <algorithm>
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
    : device_(device.info,
              [this](Bytes) -> std::shared_ptr<const ExportedHandle> {
                clock_.Advance(absl::Microseconds(50));
                return nullptr;
              }),
      broker_(device.options, BrokerPorts{device_, executor_, *this, clock_, alarm_, this}) {}

void TracedBroker::AddSession(SessionId session, TenantId tenant) {
  broker_.AddSession(session, tenant).IgnoreError();
}

CallId TracedBroker::Allocate(SessionId session, const std::vector<Bytes>& sizes) {
  AllocateRequest request;
  for (const Bytes size : sizes) request.blocks.emplace_back().size = size;
  return Allocate(session, std::move(request));
}

CallId TracedBroker::AllocateZeroed(SessionId session, const std::vector<Bytes>& sizes) {
  AllocateRequest request;
  for (const Bytes size : sizes) {
    request.blocks.emplace_back().size = size;
    request.blocks.back().zeroed = true;
  }
  return Allocate(session, std::move(request));
}

CallId TracedBroker::Allocate(SessionId session, AllocateRequest request) {
  const CallId call(++last_call_);
  request.wait_until = clock_.Now() + absl::Hours(1);
  broker_.Allocate(session, call, request).status().IgnoreError();
  return call;
}

void TracedBroker::Release(SessionId session, const std::vector<BlockId>& blocks) {
  broker_.Release(session, blocks).IgnoreError();
}

CallId TracedBroker::OpenSegment(SessionId session, const std::string& name, Bytes size) {
  const CallId call(++last_call_);
  OpenSegmentRequest request;
  request.name = name;
  request.size = size;
  request.wait_until = clock_.Now() + absl::Hours(1);
  broker_.OpenSegment(session, call, request).status().IgnoreError();
  return call;
}

void TracedBroker::Seal(SessionId session, SegmentId segment) {
  broker_.SealSegment(session, segment, Checksum{1, 2}).IgnoreError();
}

void TracedBroker::Close(SessionId session, SegmentId segment) {
  broker_.CloseSegment(session, segment).IgnoreError();
}

void TracedBroker::Advance(absl::Duration by) {
  clock_.Advance(by);
  due_ = std::min(due_, alarm_.TakeTime());
  if (due_ > clock_.Now()) return;
  due_ = absl::InfiniteFuture();
  broker_.Tick();
}

const CallAnswered* TracedBroker::Answer(CallId call) const {
  const auto found = answers_.find(call);
  return found == answers_.end() ? nullptr : &found->second;
}

void TracedBroker::OnTurn(RecordedTurn turn) {
  if (const auto* answer = std::get_if<CallAnswered>(&turn.turn)) {
    answers_[answer->call] = *answer;
  }
  turns_.push_back({0, std::move(turn)});
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

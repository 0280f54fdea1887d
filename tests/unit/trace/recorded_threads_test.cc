// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A recording as the daemon makes it: real threads, a real clock, a real file.
#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "daemon/trace/recorder.h"
#include "daemon/trace/replayer.h"
#include "daemon/vulkan/device_thread.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

// Lets each caller wait for its own answer.
class Answers final : public EventSink {
 public:
  std::future<absl::StatusOr<Grant>> Expect(CallId call) {
    MutexLock lock(mutex_);
    return promises_[call].get_future();
  }
  void Deliver(SessionId, Event event) override {
    if (auto* done = std::get_if<AllocateDone>(&event)) {
      MutexLock lock(mutex_);
      promises_[done->call].set_value(std::move(done->grant));
    }
  }

 private:
  Mutex mutex_;
  std::map<CallId, std::promise<absl::StatusOr<Grant>>> promises_ ABSL_GUARDED_BY(mutex_);
};

class Recording final : public DeviceObserver {
 public:
  explicit Recording(Recorder& recorder) : recorder_(recorder) {}
  bool WantsTurns() const override { return true; }
  void OnTurn(RecordedTurn turn) override { recorder_.Record(0, std::move(turn)); }
  void OnWarning(std::string) override {}

 private:
  Recorder& recorder_;
};

// A client that never holds so much that another one would have to wait for it.
void RunClient(DeviceBroker& broker, Answers& answers, uint32_t number, int rounds) {
  std::mt19937 random(number);
  const SessionId session(number);
  EXPECT_THAT(broker.AddSession(session, number % 2 == 0 ? kAlice : kBob), IsOk());
  std::vector<BlockId> held;
  for (int i = 0; i < rounds; ++i) {
    const CallId call(number * 1000000 + static_cast<uint64_t>(i));
    std::future<absl::StatusOr<Grant>> later = answers.Expect(call);
    AllocateRequest request;
    request.blocks.resize(1 + random() % 2);
    for (BlockRequest& block : request.blocks) {
      block.size = random() % 2 == 0 ? MiB(1 + random() % 3) : Bytes(1 + random() % MiB(8).count());
    }
    const auto outcome = broker.Allocate(session, call, request);
    ASSERT_THAT(outcome, IsOk());
    const Grant* const at_once = std::get_if<Grant>(&*outcome);
    const absl::StatusOr<Grant> grant = at_once != nullptr ? *at_once : later.get();
    ASSERT_THAT(grant, IsOk());
    for (const GrantedBlock& block : grant->blocks) held.push_back(block.id);
    while (held.size() > 2) {
      std::swap(held[random() % held.size()], held.back());
      EXPECT_THAT(broker.Release(session, {held.back()}), IsOk());
      held.pop_back();
    }
  }
  broker.EndSession(session);
}

TEST(RecordedThreadsTest, WhatThreadsDidIsReplayedToTheSameStatistics) {
  const TempDir dir;
  const RealClock clock;
  TracedDevice traced = TracedDeviceOf(MiB(200));
  traced.options.admission.pools = {{"small", 0, false, false, {MiB(4), MiB(60), 8}},
                                    {"large", 0, false, false, {MiB(64), Bytes::Max(), 4}}};
  const TraceStart start{"0.0.test", clock.Now(), "", {traced}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Recorder> recorder,
                       Recorder::Start(dir.File("trace"), start, {},
                                       [](const std::string& text) { ADD_FAILURE() << text; }));
  Recording recording(*recorder);
  SimulatedDevice device(traced.info);
  Answers answers;
  FakeAlarm alarm;
  DeviceThreads threads;
  DeviceBroker broker(traced.options, {device, threads, answers, clock, alarm, &recording});
  std::vector<std::thread> clients;
  for (uint32_t number = 1; number <= 4; ++number) {
    clients.emplace_back([&, number] { RunClient(broker, answers, number, 300); });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(broker.Trim({std::nullopt, Bytes(), true}), IsOk());
  threads.Stop();
  const DeviceStats stats = broker.Stats();
  recorder->Finish({&stats, 1});

  ASSERT_OK_AND_ASSIGN(const ReplayResult result, Replay(dir.File("trace"), {}));
  EXPECT_TRUE(result.exact) << absl::StrJoin(result.notes, " ");
  EXPECT_GT(result.configurations[0].devices[0].figures.hits, 0u);
  EXPECT_EQ(result.configurations[0].devices[0].figures.allocations, device.counts().allocations);
  EXPECT_EQ(result.configurations[0].devices[0].figures.frees, device.counts().frees);
}

}  // namespace
}  // namespace heapbroker

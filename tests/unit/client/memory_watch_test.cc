// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {
namespace {

v1::WatchEvent GiveBack(uint64_t bytes) {
  v1::WatchEvent event;
  v1::GiveBack& give_back = *event.mutable_give_back();
  give_back.set_device_index(1);
  give_back.set_heap_index(2);
  give_back.set_bytes(bytes);
  give_back.mutable_time()->set_nanos(500'000'000);
  return event;
}

class MemoryWatchTest : public testing::Test {
 protected:
  std::shared_ptr<Client> Connect() {
    return Client::Connect({.runtime_dir = daemon_.runtime_dir()}).value();
  }
  // Notes what it is told.
  WatchHandlers Notes() {
    return {.on_give_back =
                [this](const GiveBackRequest& request) {
                  MutexLock lock(mutex_);
                  give_backs_.push_back(request);
                },
            .on_segment_sealed =
                [this](const SegmentSealed& sealed) {
                  MutexLock lock(mutex_);
                  sealed_.push_back(sealed);
                },
            .on_end =
                [this](const absl::Status& status) {
                  MutexLock lock(mutex_);
                  ends_.push_back(status);
                }};
  }
  std::unique_ptr<MemoryWatch> Watch(WatchHandlers handlers) {
    absl::StatusOr<std::unique_ptr<MemoryWatch>> watch = client_->Watch(std::move(handlers));
    EXPECT_THAT(watch, IsOk());
    return *std::move(watch);
  }
  bool WaitForEnd() {
    return WaitFor([&] {
      MutexLock lock(mutex_);
      return !ends_.empty();
    });
  }

  MemfdBlockSource source_;
  FakeDaemon daemon_{source_};
  std::shared_ptr<Client> client_ = Connect();
  Mutex mutex_;
  std::vector<GiveBackRequest> give_backs_ ABSL_GUARDED_BY(mutex_);
  std::vector<SegmentSealed> sealed_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> ends_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(MemoryWatchTest, PassesOnWhatTheDaemonTells) {
  const std::unique_ptr<MemoryWatch> watch = Watch(Notes());
  daemon_.Tell(GiveBack(100));
  v1::WatchEvent sealed;
  sealed.mutable_segment_sealed()->set_segment_id(9);
  sealed.mutable_segment_sealed()->set_name("weights");
  sealed.mutable_segment_sealed()->set_device_index(1);
  daemon_.Tell(sealed);
  ASSERT_TRUE(WaitFor([&] {
    MutexLock lock(mutex_);
    return !sealed_.empty();
  }));
  MutexLock lock(mutex_);
  ASSERT_EQ(give_backs_.size(), 1u);
  EXPECT_EQ(give_backs_[0].device_index, 1u);
  EXPECT_EQ(give_backs_[0].heap_index, 2u);
  EXPECT_EQ(give_backs_[0].bytes, Bytes(100));
  EXPECT_EQ(give_backs_[0].time, absl::Milliseconds(500));
  EXPECT_EQ(sealed_[0].segment_id, 9u);
  EXPECT_EQ(sealed_[0].name, "weights");
  EXPECT_EQ(sealed_[0].device_index, 1u);
  EXPECT_TRUE(ends_.empty());
}

TEST_F(MemoryWatchTest, WhatANewerDaemonTellsIsPassedOver) {
  const std::unique_ptr<MemoryWatch> watch = Watch(Notes());
  daemon_.Tell(v1::WatchEvent());
  daemon_.Tell(GiveBack(1));
  EXPECT_TRUE(WaitFor([&] {
    MutexLock lock(mutex_);
    return give_backs_.size() == 1;
  }));
}

TEST_F(MemoryWatchTest, HandlersMayBeEmpty) {
  const std::unique_ptr<MemoryWatch> watch = Watch({});
  daemon_.Tell(GiveBack(1));
  watch->ReportIdle({{.bytes = Bytes(1)}});
  EXPECT_TRUE(WaitFor([&] { return daemon_.idle_reports().size() == 1; }));
  daemon_.Stop();
}

TEST_F(MemoryWatchTest, ReportsAreJoinedAndTheLastOneArrives) {
  const std::unique_ptr<MemoryWatch> watch = Watch({});
  constexpr uint64_t kReports = 1000;
  for (uint64_t i = 1; i <= kReports; ++i) {
    watch->ReportIdle({{.device_index = 1, .heap_index = 2, .bytes = Bytes(i)}});
  }
  ASSERT_TRUE(WaitFor([&] {
    const auto reports = daemon_.idle_reports();
    return !reports.empty() && reports.back().report.idle(0).bytes() == kReports;
  }));
  const std::vector<FakeDaemon::IdleReport> reports = daemon_.idle_reports();
  EXPECT_EQ(reports.back().report.idle(0).device_index(), 1u);
  EXPECT_EQ(reports.back().report.idle(0).heap_index(), 2u);
  const auto seconds = std::chrono::duration<double>(reports.back().time - reports.front().time);
  EXPECT_LE(static_cast<double>(reports.size()), 2 + 10 * seconds.count());
}

TEST_F(MemoryWatchTest, ThreadsReportAtTheSameTime) {
  const std::unique_ptr<MemoryWatch> watch = Watch({});
  std::vector<std::thread> threads;
  for (uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < 500; ++i) watch->ReportIdle({{.bytes = Bytes(1000 * i + thread)}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  watch->ReportIdle({{.bytes = Bytes(7)}});
  EXPECT_TRUE(WaitFor([&] {
    const auto reports = daemon_.idle_reports();
    return !reports.empty() && reports.back().report.idle(0).bytes() == 7;
  }));
}

TEST_F(MemoryWatchTest, ItsEndIsTheDaemonsWhereTheClientDoesNotConnectAgain) {
  client_ = Client::Connect({.runtime_dir = daemon_.runtime_dir(), .reconnect = {.enabled = false}})
                .value();
  const std::unique_ptr<MemoryWatch> watch = Watch(Notes());
  EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 1; }));
  client_.reset();
  // What has ended before another one begins is not counted beside it.
  const std::shared_ptr<Client> other = Connect();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 2; }))
      << "the watch keeps the session";
  daemon_.Stop();
  ASSERT_TRUE(WaitForEnd());
  watch->ReportIdle({{.bytes = Bytes(1)}});
  MutexLock lock(mutex_);
  EXPECT_THAT(ends_[0], StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
}

TEST_F(MemoryWatchTest, TellsWhyItWasRefused) {
  daemon_.FailCallsWith(grpc::Status(grpc::StatusCode::ABORTED, "another watch"));
  const std::unique_ptr<MemoryWatch> watch = Watch(Notes());
  ASSERT_TRUE(WaitForEnd());
  MutexLock lock(mutex_);
  EXPECT_THAT(ends_[0], StatusIs(absl::StatusCode::kAborted, "another watch"));
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(MemoryWatchTest, DestructionEndsItWithoutAWord) {
  std::unique_ptr<MemoryWatch> watch = Watch(Notes());
  ASSERT_TRUE(WaitFor([&] { return daemon_.watches() == 1; }));
  watch.reset();
  EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 0; }));
  client_.reset();
  EXPECT_TRUE(WaitFor([&] { return daemon_.session_socket().connections() == 0; }));
  MutexLock lock(mutex_);
  EXPECT_TRUE(ends_.empty());
}

TEST_F(MemoryWatchTest, ManyBeginAndEndAtOnce) {
  for (int i = 0; i < 50; ++i) {
    const std::unique_ptr<MemoryWatch> watch = Watch({});
    watch->ReportIdle({{.bytes = Bytes(1)}});
  }
  EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 0; }));
}

TEST_F(MemoryWatchTest, AHandlerMayDestroyIt) {
  struct Shared {
    Mutex mutex;
    std::unique_ptr<MemoryWatch> watch ABSL_GUARDED_BY(mutex);
    int calls ABSL_GUARDED_BY(mutex) = 0;
  };
  const auto shared = std::make_shared<Shared>();
  {
    MutexLock lock(shared->mutex);
    shared->watch = Watch({.on_give_back = [shared](const GiveBackRequest&) {
      std::unique_ptr<MemoryWatch> ending;
      MutexLock lock(shared->mutex);
      ending = std::move(shared->watch);
      ++shared->calls;
    }});
  }
  daemon_.Tell(GiveBack(1));
  daemon_.Tell(GiveBack(2));
  EXPECT_TRUE(WaitFor([&] {
    MutexLock lock(shared->mutex);
    return shared->calls > 0;
  }));
  EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 0; }));
  // The handlers end with the thread that called them.
  EXPECT_TRUE(WaitFor([&] { return shared.use_count() == 1; }));
  MutexLock lock(shared->mutex);
  EXPECT_EQ(shared->calls, 1);
}

TEST_F(MemoryWatchTest, AForkedChildCanDropIt) {
  std::unique_ptr<MemoryWatch> watch = Watch(Notes());
  ASSERT_TRUE(WaitFor([&] { return daemon_.watches() == 1; }));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    watch->ReportIdle({{.bytes = Bytes(1)}});
    const bool refused = absl::IsFailedPrecondition(client_->Watch({}).status());
    watch.reset();
    client_.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  watch->ReportIdle({{.bytes = Bytes(2)}});
  EXPECT_TRUE(WaitFor([&] { return daemon_.idle_reports().size() == 1; }));
}

}  // namespace
}  // namespace heapbroker

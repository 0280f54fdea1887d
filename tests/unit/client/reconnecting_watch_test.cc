// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A MemoryWatch whose session is lost, and one whose stream alone is.
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "heapbroker/memory_watch.h"
#include "tests/support/no_more_threads.h"
#include "tests/unit/client/reconnect_fixture.h"

namespace heapbroker {
namespace {

v1::WatchEvent GiveBack(uint64_t bytes) {
  v1::WatchEvent event;
  event.mutable_give_back()->set_bytes(bytes);
  return event;
}

class ReconnectingWatchTest : public ReconnectFixture {
 protected:
  WatchHandlers Notes() {
    return {.on_give_back =
                [this](const GiveBackRequest& request) {
                  MutexLock lock(mutex_);
                  give_backs_.push_back(request.bytes);
                },
            .on_session_lost =
                [this](const absl::Status& status) {
                  MutexLock lock(mutex_);
                  losses_.push_back(status);
                },
            .on_end =
                [this](const absl::Status& status) {
                  MutexLock lock(mutex_);
                  ends_.push_back(status);
                }};
  }
  bool AwaitGiveBacks(size_t count) {
    return WaitFor([&] {
      MutexLock lock(mutex_);
      return give_backs_.size() == count;
    });
  }
  bool AwaitLosses(size_t count) {
    return WaitFor([&] {
      MutexLock lock(mutex_);
      return losses_.size() == count;
    });
  }
  // Of the daemon that is there now.
  bool AwaitReport(uint64_t bytes) {
    return WaitFor([&] {
      const std::vector<FakeDaemon::IdleReport> reports = daemon_.idle_reports();
      return !reports.empty() && reports.back().report.idle_size() == 1 &&
             reports.back().report.idle(0).bytes() == bytes;
    });
  }

  std::vector<Bytes> give_backs_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> losses_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> ends_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ReconnectingWatchTest, GoesOnWithTheNextSessionAndIsTheOneThatNoticesTheLoss) {
  const std::shared_ptr<Client> client = Connect(Options());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryWatch> watch, client->Watch(Notes()));
  watch->ReportIdle({{.bytes = Bytes(11)}});
  ASSERT_TRUE(AwaitReport(11));
  daemon_.Restart();
  ASSERT_TRUE(AwaitLosses(1));
  // Of the new session nothing is idle before somebody says so.
  pace_->Go();
  ASSERT_THAT(client->AwaitSession(), IsOk());
  daemon_.Tell(GiveBack(2));
  ASSERT_TRUE(AwaitGiveBacks(1));
  EXPECT_TRUE(daemon_.idle_reports().empty());
  watch->ReportIdle({{.bytes = Bytes(22)}});
  EXPECT_TRUE(AwaitReport(22));
  EXPECT_EQ(daemon_.idle_reports().size(), 1u);
  MutexLock lock(mutex_);
  EXPECT_THAT(losses_[0], StatusIs(absl::StatusCode::kUnavailable, "session has ended"));
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ReconnectingWatchTest, AStreamThatBreaksAloneIsOpenedAgainAndSaysTheLastReportAgain) {
  const std::shared_ptr<Client> client = Connect(Options());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryWatch> watch, client->Watch(Notes()));
  watch->ReportIdle({{.bytes = Bytes(11)}});
  ASSERT_TRUE(AwaitReport(11));
  daemon_.BreakConnections();
  EXPECT_TRUE(WaitFor([&] { return daemon_.idle_reports().size() == 2; }));
  EXPECT_TRUE(AwaitReport(11));
  daemon_.Tell(GiveBack(1));
  EXPECT_TRUE(AwaitGiveBacks(1));
  MutexLock lock(mutex_);
  EXPECT_TRUE(losses_.empty());
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ReconnectingWatchTest, ATimeWithoutAFreeDescriptorPasses) {
  // As Connection::Conclude tells of a daemon that could not be reached for want of one.
  daemon_.RefuseWatchesWith(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "descriptors"));
  const std::shared_ptr<Client> client = Connect(Options());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryWatch> watch, client->Watch(Notes()));
  EXPECT_TRUE(WaitFor([&] { return daemon_.refused_watches() >= 2; }));
  daemon_.RefuseWatchesWith(grpc::Status::OK);
  daemon_.Tell(GiveBack(1));
  EXPECT_TRUE(AwaitGiveBacks(1));
  MutexLock lock(mutex_);
  EXPECT_TRUE(losses_.empty());
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ReconnectingWatchTest, ATimeWithoutAnotherThreadPasses) {
  const std::shared_ptr<Client> client = Connect(Options());
  {
    const NoMoreThreads no_more;
    EXPECT_THAT(client->Watch(Notes()), StatusIs(absl::StatusCode::kResourceExhausted, "thread"));
  }
  // So that one begins anew all the time.
  daemon_.RefuseWatchesWith(grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryWatch> watch, client->Watch(Notes()));
  EXPECT_TRUE(WaitFor([&] { return daemon_.refused_watches() >= 1; }));
  {
    const NoMoreThreads no_more;
    daemon_.RefuseWatchesWith(grpc::Status::OK);
    const int refused = daemon_.refused_watches();
    const absl::Time begin = absl::Now();
    EXPECT_TRUE(WaitFor([&] { return absl::Now() - begin > absl::Milliseconds(300); }));
    EXPECT_EQ(daemon_.refused_watches(), refused);
  }
  daemon_.Tell(GiveBack(1));
  EXPECT_TRUE(AwaitGiveBacks(1));
  MutexLock lock(mutex_);
  EXPECT_TRUE(losses_.empty());
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ReconnectingWatchTest, EndsWhileThereIsNoSession) {
  const std::shared_ptr<Client> client = Connect(Options());
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<MemoryWatch> watch, client->Watch(Notes()));
  daemon_.Stop();
  ASSERT_TRUE(AwaitLosses(1));
  watch->ReportIdle({{.bytes = Bytes(1)}});
  watch.reset();
  MutexLock lock(mutex_);
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ReconnectingWatchTest, AWatchThatBeginsWithoutASessionWaitsForOne) {
  const std::shared_ptr<Client> client = Connect(Options());
  daemon_.Restart();
  EXPECT_FALSE(client->Allocate({.size = Bytes(1)}).ok());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryWatch> watch, client->Watch(Notes()));
  daemon_.Tell(GiveBack(3));
  pace_->Go();
  EXPECT_TRUE(AwaitGiveBacks(1));
}

TEST_F(ReconnectingWatchTest, TheHandlerOfTheLossMayDestroyIt) {
  struct Shared {
    Mutex mutex;
    std::unique_ptr<MemoryWatch> watch ABSL_GUARDED_BY(mutex);
  };
  const auto shared = std::make_shared<Shared>();
  std::shared_ptr<Client> client = Connect(Options());
  {
    WatchHandlers handlers;
    handlers.on_session_lost = [shared](const absl::Status&) {
      std::unique_ptr<MemoryWatch> ending;
      MutexLock lock(shared->mutex);
      ending = std::move(shared->watch);
    };
    MutexLock lock(shared->mutex);
    shared->watch = client->Watch(std::move(handlers)).value();
  }
  ASSERT_TRUE(WaitFor([&] { return daemon_.watches() == 1; }));
  daemon_.Restart();
  EXPECT_TRUE(WaitFor([&] { return shared.use_count() == 1; }));
  pace_->Go();
  ASSERT_THAT(client->AwaitSession(), IsOk());
  EXPECT_TRUE(WaitFor([&] { return daemon_.watches() == 0; }));
}

}  // namespace
}  // namespace heapbroker

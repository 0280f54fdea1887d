// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client whose daemon is lost and comes back as the test says.
#ifndef TESTS_UNIT_CLIENT_RECONNECT_FIXTURE_H_
#define TESTS_UNIT_CLIENT_RECONNECT_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "client/transport/session_keeper.h"
#include "common/base/mutex.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/client/fake_pace.h"

namespace heapbroker {

class ReconnectFixture : public testing::Test {
 protected:
  ClientOptions Options() const { return {.name = "test", .runtime_dir = daemon_.runtime_dir()}; }
  // That notes what it is told.
  ClientOptions NotingOptions() {
    ClientOptions options = Options();
    options.handlers.on_lost = [this](const LostSession& lost) {
      MutexLock lock(mutex_);
      lost_.push_back(lost);
    };
    options.handlers.on_reconnected = [this](const NewSession& session) {
      MutexLock lock(mutex_);
      new_.push_back(session);
    };
    return options;
  }
  std::shared_ptr<Client> Connect(const ClientOptions& options) {
    absl::StatusOr<std::shared_ptr<SessionKeeper>> keeper = SessionKeeper::Connect(
        options, CallLimits(absl::Seconds(20)), std::make_unique<FakePace>(pace_));
    EXPECT_THAT(keeper, IsOk());
    return std::make_shared<Client>(*std::move(keeper));
  }

  std::vector<LostSession> lost() const {
    MutexLock lock(mutex_);
    return lost_;
  }
  std::vector<NewSession> reconnected() const {
    MutexLock lock(mutex_);
    return new_;
  }
  bool AwaitLost(size_t count = 1) {
    return WaitFor([&] { return lost().size() == count; });
  }
  bool AwaitReconnected(size_t count = 1) {
    return WaitFor([&] { return reconnected().size() == count; });
  }
  bool AwaitPauses(size_t count) {
    return WaitFor([&] { return pace_->pauses().size() == count; });
  }

  MemfdBlockSource source_;
  FakeDaemon daemon_{source_};
  const std::shared_ptr<PaceControl> pace_ = std::make_shared<PaceControl>();
  mutable Mutex mutex_;
  std::vector<LostSession> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<NewSession> new_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_RECONNECT_FIXTURE_H_

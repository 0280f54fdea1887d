// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon under attack: whatever a test does to it, afterwards it must serve as
// before and have kept nothing.
#ifndef TESTS_INTEGRATION_HOSTILE_FIXTURE_H_
#define TESTS_INTEGRATION_HOSTILE_FIXTURE_H_

#include <cstddef>

#include "tests/integration/daemon_fixture.h"
#include "tests/integration/raw_session.h"

namespace heapbroker {

class HostileFixture : public DaemonFixture {
 protected:
  void SetUp() override { Begin({}); }

  // Starts the daemon, with the connection that the test's own calls use.
  void Begin(DaemonOptions options) {
    ASSERT_NO_FATAL_FAILURE(StartDaemonWith(std::move(options)));
    before_ = Held();
    descriptors_before_ = DaemonDescriptors();
  }

  // All sessions of the test have ended by now: they are its local variables.
  void TearDown() override {
    if (daemon_ == nullptr) return;
    EXPECT_TRUE(WaitFor([&] {
      return Held() == before_ && DaemonDescriptors() == descriptors_before_;
    })) << Held()
        << "; " << DaemonDescriptors() << " descriptors, " << descriptors_before_ << " before";
    // Checks that what a client needs still works, from hello to release.
    const auto client = StartClient("afterwards");
    ASSERT_TRUE(client != nullptr);
    EXPECT_THAT(client->Ask("allocate a 65536"), IsOk());
    EXPECT_THAT(client->Ask("fetch a"), IsOk());
    EXPECT_THAT(client->Ask("give-back a"), IsOk());
    ASSERT_OK_AND_ASSIGN(const ExitStatus ended, daemon_->Stop());
    EXPECT_EQ(ended, Exited(0)) << daemon_->Log();
  }

  absl::StatusOr<RawSession> OpenSession() {
    return RawSession::Open(SocketPath("session.sock"), channel_);
  }

  Holdings before_;
  size_t descriptors_before_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_HOSTILE_FIXTURE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client outlives its daemon: what it imported stays, calls say so, nothing
// crashes.
#include <csignal>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/sanitizer.h"

namespace heapbroker {
namespace {

class DaemonLostTest : public DaemonFixture, public testing::WithParamInterface<int> {
 protected:
  void LoseTheDaemon() {
    ASSERT_THAT(daemon_->process().Signal(GetParam()), IsOk());
    ASSERT_OK_AND_ASSIGN(const ExitStatus ended, daemon_->process().Wait(kEndTimeout));
    EXPECT_EQ(ended, GetParam() == SIGKILL ? KilledBy(SIGKILL) : Exited(0)) << daemon_->Log();
  }
};

TEST_P(DaemonLostTest, ImportedMemoryStaysUsable) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  const auto other = StartClient("other");
  ASSERT_TRUE(client != nullptr && other != nullptr);
  ASSERT_THAT(client->Ask("allocate a 1000000"), IsOk());
  ASSERT_THAT(client->Ask("fill a 0 1000000 1"), IsOk());
  ASSERT_THAT(client->Ask("allocate b 1000000 zeroed"), IsOk());
  ASSERT_THAT(client->Ask("zeros b"), IsOk());  // Imports it.
  ASSERT_THAT(client->Ask("open s weights 100000"), IsOk());
  ASSERT_THAT(client->Ask("fill s 0 100000 2"), IsOk());
  ASSERT_THAT(client->Ask("seal s"), IsOk());
  ASSERT_THAT(other->Ask("attach s weights"), IsOk());
  ASSERT_THAT(other->Ask("check s 0 100000 2"), IsOk());

  ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
  EXPECT_THAT(client->Ask("check a 0 1000000 1"), IsOk());
  EXPECT_THAT(client->Ask("copy a b"), IsOk());
  EXPECT_THAT(client->Ask("check b 0 1000000 1"), IsOk());
  EXPECT_THAT(client->Ask("fill a 0 1000000 3"), IsOk());
  EXPECT_THAT(client->Ask("check a 0 1000000 3"), IsOk());
  // Also what two processes share is shared still.
  EXPECT_THAT(client->Ask("fill s 0 100000 4"), IsOk());
  EXPECT_THAT(other->Ask("check s 0 100000 4"), IsOk());
  for (ClientProcess* process : {client.get(), other.get()}) {
    ASSERT_OK_AND_ASSIGN(const ExitStatus ended, process->Quit());
    EXPECT_EQ(ended, Exited(0)) << process->process().ErrorOutput();
  }
}

TEST_P(DaemonLostTest, EveryCallIsUnavailable) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  const auto waiter = StartClient("waiter");
  ASSERT_TRUE(client != nullptr && waiter != nullptr);
  ASSERT_THAT(client->Ask("allocate released 100000"), IsOk());
  ASSERT_THAT(client->Ask("allocate unfetched 100000"), IsOk());
  ASSERT_THAT(client->Ask("open filled weights 100000"), IsOk());
  ASSERT_THAT(waiter->Send("open s weights 100000"), IsOk());
  ASSERT_TRUE(WaitFor([&] { return WaitingSessions() == 1; }));

  ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(waiter->Answer(), StatusIs(kUnavailable, ""));
  EXPECT_THAT(client->Ask("allocate a 100000"), StatusIs(kUnavailable, ""));
  EXPECT_THAT(client->Ask("fetch unfetched"), StatusIs(kUnavailable, "session has ended"));
  EXPECT_THAT(client->Ask("give-back released"), StatusIs(kUnavailable, ""));
  EXPECT_THAT(client->Ask("open s other 100000"), StatusIs(kUnavailable, ""));
  EXPECT_THAT(client->Ask("seal-unread filled"), StatusIs(kUnavailable, ""));
  EXPECT_THAT(client->Ask("give-back filled"), StatusIs(kUnavailable, ""));
  for (ClientProcess* process : {client.get(), waiter.get()}) {
    ASSERT_OK_AND_ASSIGN(const ExitStatus ended, process->Quit());
    EXPECT_EQ(ended, Exited(0)) << process->process().ErrorOutput();
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, DaemonLostTest, testing::Values(SIGKILL, SIGTERM),
                         [](const auto& tested) {
                           return tested.param == SIGKILL ? "Killed" : "Terminated";
                         });

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon ends, in whatever way, and another one comes in its place: its clients are
// told what they have lost, connect to it by themselves, and take nothing over.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/process_facts.h"
#include "tests/support/sanitizer.h"

namespace heapbroker {
namespace {

class DaemonReturnsTest : public DaemonFixture, public testing::WithParamInterface<int> {
 protected:
  void LoseTheDaemon() {
    ASSERT_THAT(daemon_->process().Signal(GetParam()), IsOk());
    ASSERT_THAT(daemon_->process().Wait(kEndTimeout), IsOk());
  }
  // The other way round than StartDaemon does it: clients are there before anything can
  // be compared, so nobody waits until there are none.
  void StartAnotherDaemon() {
    DaemonOptions options;
    options.runtime_dir = runtime_dir();
    ASSERT_OK_AND_ASSIGN(daemon_, DaemonProcess::Start(std::move(options)));
    AskDaemonAnew();
  }
};

TEST_P(DaemonReturnsTest, ItsClientIsToldWhatItLostAndHasASessionAgain) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_OK_AND_ASSIGN(const std::string a, client->Ask("allocate a 100000"));
  ASSERT_OK_AND_ASSIGN(const std::string b, client->Ask("allocate b 100000"));
  ASSERT_THAT(client->Ask("allocate released 100000"), IsOk());
  ASSERT_THAT(client->Ask("give-back released"), IsOk());
  ASSERT_THAT(client->Ask("fill a 0 100000 1"), IsOk());
  ASSERT_THAT(client->Ask("open s weights 100000"), IsOk());
  ASSERT_THAT(client->Ask("fill s 0 100000 2"), IsOk());
  ASSERT_THAT(client->Ask("seal s"), IsOk());

  ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
  ASSERT_OK_AND_ASSIGN(const std::string lost, client->Ask("lost"));
  EXPECT_EQ(FieldOf(lost, "leases"), absl::StrCat(FieldOf(a, "blocks"), ",", FieldOf(b, "blocks")));
  EXPECT_EQ(FieldOf(lost, "segments"), "weights");
  EXPECT_THAT(client->Ask("allocate c 100000"),
              StatusIs(absl::StatusCode::kUnavailable, "the library is connecting again"));

  ASSERT_NO_FATAL_FAILURE(StartAnotherDaemon());
  ASSERT_OK_AND_ASSIGN(const std::string again, client->Ask("reconnected"));
  EXPECT_EQ(FieldOf(again, "same-devices"), "1");
  EXPECT_EQ(Held().leased_blocks, 0u);
  EXPECT_EQ(Held().client_sessions, 1u);
  ASSERT_THAT(client->Ask("allocate c 100000"), IsOk());
  ASSERT_THAT(client->Ask("fill c 0 100000 3"), IsOk());
  // What it has in hand is there still, and is nobody's business.
  EXPECT_THAT(client->Ask("check a 0 100000 1"), IsOk());
  EXPECT_THAT(client->Ask("check s 0 100000 2"), IsOk());
  EXPECT_THAT(client->Ask("give-back a"), StatusIs(absl::StatusCode::kUnavailable, ""));
  EXPECT_THAT(client->Ask("give-back s"), StatusIs(absl::StatusCode::kUnavailable, ""));
  EXPECT_EQ(Held().leased_blocks, 1u);
  EXPECT_THAT(client->Ask("check c 0 100000 3"), IsOk());
  ASSERT_OK_AND_ASSIGN(const ExitStatus ended, client->Quit());
  EXPECT_EQ(ended, Exited(0)) << client->process().ErrorOutput();
}

TEST_P(DaemonReturnsTest, ManyClientsComeBackAllOfThem) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(StartClient(absl::StrCat("client", i)));
    ASSERT_TRUE(clients.back() != nullptr);
    ASSERT_THAT(clients.back()->Ask("allocate a 4096"), IsOk());
  }
  ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
  ASSERT_NO_FATAL_FAILURE(StartAnotherDaemon());
  for (const auto& client : clients) {
    EXPECT_THAT(client->Ask("reconnected"), IsOk());
    EXPECT_THAT(client->Ask("allocate b 4096"), IsOk());
  }
  EXPECT_EQ(Held().client_sessions, 12u);
  EXPECT_EQ(Held().leased_blocks, 12u);
}

TEST_P(DaemonReturnsTest, AWatchGoesOnWithTheNewDaemon) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_THAT(client->Ask("watch"), IsOk());
  ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
  ASSERT_NO_FATAL_FAILURE(StartAnotherDaemon());
  ASSERT_THAT(client->Ask("reconnected"), IsOk());
  const auto writer = StartClient("writer");
  ASSERT_TRUE(writer != nullptr);
  // Whatever is sealed before the watch is there again is not told, so there are many.
  ASSERT_THAT(client->Send("sealed"), IsOk());
  int number = 0;
  EXPECT_TRUE(WaitFor([&] {
    ++number;
    EXPECT_THAT(writer->Ask(absl::StrCat("open s", number, " weights", number, " 4096")), IsOk());
    EXPECT_THAT(writer->Ask(absl::StrCat("seal-unread s", number)), IsOk());
    return client->HasAnswer();
  }));
  ASSERT_OK_AND_ASSIGN(const std::string sealed, client->Answer());
  EXPECT_THAT(FieldOf(sealed, "segment"), testing::StartsWith("weights"));
}

TEST_P(DaemonReturnsTest, DynamicMemoryIsOfTheNewDaemonFromThenOn) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  // Nothing that is idle goes home by itself.
  ASSERT_THAT(client->Ask("dynamic-start 0"), IsOk());
  ASSERT_THAT(client->Ask("dynamic-allocate old 1000"), IsOk());
  ASSERT_THAT(client->Ask("dynamic-allocate idle 20000000"), IsOk());
  ASSERT_THAT(client->Ask("dynamic-free idle"), IsOk());
  ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
  ASSERT_NO_FATAL_FAILURE(StartAnotherDaemon());
  ASSERT_THAT(client->Ask("reconnected"), IsOk());
  // The cache hears of the loss in its own time.
  int number = 0;
  EXPECT_TRUE(WaitFor([&] {
    EXPECT_THAT(client->Ask(absl::StrCat("dynamic-allocate new", ++number, " 1000")), IsOk());
    return Held().leased_blocks == 1;
  }));
  ASSERT_THAT(client->Ask("dynamic-free old"), IsOk());
  ASSERT_THAT(client->Ask(absl::StrCat("dynamic-free new", number)), IsOk());
  EXPECT_TRUE(WaitFor([&] { return Stats().devices(0).heaps(0).idle_in_clients() > 0; }));
  EXPECT_EQ(Held().leased_blocks, 1u);
  ASSERT_OK_AND_ASSIGN(const ExitStatus ended, client->Quit());
  EXPECT_EQ(ended, Exited(0)) << client->process().ErrorOutput();
}

TEST_P(DaemonReturnsTest, NothingAddsUpOverManyLosses) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  size_t descriptors = 0;
  for (int i = 0; i < 6; ++i) {
    ASSERT_THAT(client->Ask("allocate a 100000"), IsOk());
    ASSERT_THAT(client->Ask("fetch a"), IsOk());
    // The first of all opened what lasts.
    if (i == 1) descriptors = OpenDescriptorCount(client->pid()).value();
    if (i > 1) EXPECT_EQ(OpenDescriptorCount(client->pid()).value(), descriptors) << i;
    ASSERT_NO_FATAL_FAILURE(LoseTheDaemon());
    ASSERT_THAT(client->Ask("lost"), IsOk());
    EXPECT_THAT(client->Ask("give-back a"), StatusIs(absl::StatusCode::kUnavailable, ""));
    ASSERT_NO_FATAL_FAILURE(StartAnotherDaemon());
    ASSERT_THAT(client->Ask("reconnected"), IsOk());
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, DaemonReturnsTest, testing::Values(SIGKILL, SIGTERM),
                         [](const auto& tested) {
                           return tested.param == SIGKILL ? "Killed" : "Terminated";
                         });

}  // namespace
}  // namespace heapbroker

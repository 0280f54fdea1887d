// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What happens when there is not enough for everybody: clients that are processes of
// their own wait, are asked for what they keep idle, and are told why they are
// refused.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/process.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class WaitingTest : public DaemonFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemon({"--heap-budget=64MiB"}));
    holder_ = StartClient("holder");
    asker_ = StartClient("asker");
    ASSERT_TRUE(holder_ != nullptr && asker_ != nullptr);
    ASSERT_THAT(holder_->Ask(absl::StrCat("allocate most ", 48 << 20)), IsOk());
  }

  uint64_t WaitingRequests() { return Stats().devices(0).heaps(0).waiting_requests(); }
  uint64_t IdleInClients() { return Stats().devices(0).heaps(0).idle_in_clients(); }

  std::unique_ptr<ClientProcess> holder_;
  std::unique_ptr<ClientProcess> asker_;
};

TEST_F(WaitingTest, ARequestIsServedAsSoonAsAnotherClientReleases) {
  ASSERT_THAT(asker_->Send(absl::StrCat("allocate wanted ", 32 << 20, " timeout=30000")), IsOk());
  ASSERT_TRUE(WaitFor([&] { return WaitingRequests() == 1; }));
  EXPECT_FALSE(asker_->HasAnswer());
  ASSERT_THAT(holder_->Ask("give-back most"), IsOk());
  EXPECT_THAT(asker_->Answer(), IsOk());
  EXPECT_EQ(WaitingRequests(), 0u);
  EXPECT_EQ(Stats().devices(0).requests().queued(), 1u);
}

TEST_F(WaitingTest, ARequestIsServedAsSoonAsTheHolderIsKilled) {
  ASSERT_THAT(asker_->Send(absl::StrCat("allocate wanted ", 32 << 20, " timeout=30000")), IsOk());
  ASSERT_TRUE(WaitFor([&] { return WaitingRequests() == 1; }));
  ASSERT_THAT(holder_->process().Signal(SIGKILL), IsOk());
  EXPECT_THAT(asker_->Answer(), IsOk());
}

TEST_F(WaitingTest, ARequestThatMayNotWaitIsRefusedAtOnceWithTheFigures) {
  const auto refused = asker_->Ask(absl::StrCat("allocate wanted ", 32 << 20, " wait=0"));
  // Limit 1 is the heap's budget.
  EXPECT_THAT(refused, StatusIs(StatusCode::kResourceExhausted,
                                absl::StrCat("refused=1 largest=", 16 << 20, " never=0")));
  EXPECT_EQ(Stats().devices(0).requests().limit_reached(), 1u);
  EXPECT_THAT(asker_->Ask(absl::StrCat("allocate fits ", 16 << 20, " wait=0")), IsOk());
}

TEST_F(WaitingTest, WhatCanNeverFitIsRefusedAtOnceHoweverLongTheRequestMayWait) {
  EXPECT_THAT(asker_->Ask(absl::StrCat("allocate wanted ", 65 << 20, " timeout=60000")),
              StatusIs(StatusCode::kResourceExhausted, "never=1"));
}

TEST_F(WaitingTest, ARequestThatWaitsIsRefusedBeforeItsDeadlineSoThatTheReasonArrives) {
  EXPECT_THAT(asker_->Ask(absl::StrCat("allocate wanted ", 32 << 20, " timeout=1000")),
              StatusIs(StatusCode::kResourceExhausted, "refused=1"));
  EXPECT_EQ(WaitingRequests(), 0u);
}

TEST_F(WaitingTest, WhoWouldWaitForEverKeepsNobodyElseFromHisAnswer) {
  ASSERT_THAT(asker_->Send(absl::StrCat("allocate wanted ", 32 << 20, " for-ever")), IsOk());
  ASSERT_TRUE(WaitFor([&] { return WaitingRequests() == 1; }));
  const auto other = StartClient("other");
  ASSERT_TRUE(other != nullptr);
  EXPECT_THAT(other->Ask(absl::StrCat("allocate wanted ", 32 << 20, " timeout=1000")),
              StatusIs(StatusCode::kResourceExhausted, "refused=1"));
  EXPECT_EQ(WaitingRequests(), 1u);
  ASSERT_THAT(holder_->Ask("give-back most"), IsOk());
  EXPECT_THAT(asker_->Answer(), IsOk());
}

TEST_F(WaitingTest, AClientThatDiesWhileItWaitsLeavesNothingBehind) {
  ASSERT_THAT(asker_->Send(absl::StrCat("allocate wanted ", 32 << 20, " timeout=30000")), IsOk());
  ASSERT_TRUE(WaitFor([&] { return WaitingRequests() == 1; }));
  ASSERT_THAT(asker_->process().Signal(SIGKILL), IsOk());
  EXPECT_TRUE(WaitFor([&] { return WaitingRequests() == 0 && Held().client_sessions == 1; }));
}

TEST_F(WaitingTest, IdleMemoryOfAnotherClientIsAskedForBeforeARefusal) {
  ASSERT_THAT(holder_->Ask("watch"), IsOk());
  ASSERT_THAT(holder_->Ask(absl::StrCat("idle 0 0 ", 48 << 20)), IsOk());
  ASSERT_TRUE(WaitFor([&] { return IdleInClients() == 48 << 20; }));
  ASSERT_THAT(holder_->Send("asked"), IsOk());
  // It may not wait for others' goodwill, but for those that were asked.
  ASSERT_THAT(asker_->Send(absl::StrCat("allocate wanted ", 32 << 20, " wait=0")), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string asked, holder_->Answer());
  EXPECT_THAT(asked, HasSubstr("device=0 heap=0"));
  ASSERT_THAT(holder_->Ask("give-back most"), IsOk());
  EXPECT_THAT(asker_->Answer(), IsOk());
  EXPECT_EQ(IdleInClients(), 0u) << "it holds nothing any more";
}

TEST_F(WaitingTest, WhoDoesNotGiveBackIsNotWaitedForAndNotPunished) {
  ASSERT_THAT(holder_->Ask("watch"), IsOk());
  ASSERT_THAT(holder_->Ask(absl::StrCat("idle 0 0 ", 48 << 20)), IsOk());
  ASSERT_TRUE(WaitFor([&] { return IdleInClients() == 48 << 20; }));
  EXPECT_THAT(asker_->Ask(absl::StrCat("allocate wanted ", 32 << 20, " wait=0")),
              StatusIs(StatusCode::kResourceExhausted, "refused=1"));
  EXPECT_THAT(holder_->Ask("give-back most"), IsOk());
}

TEST_F(WaitingTest, EverySessionOfTheUserIsToldThatASegmentIsSealed) {
  ASSERT_THAT(asker_->Ask("watch"), IsOk());
  ASSERT_THAT(asker_->Send("sealed"), IsOk());
  ASSERT_THAT(holder_->Ask("load weights 4096 7"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string told, asker_->Answer());
  EXPECT_THAT(told, HasSubstr("segment=weights device=0"));
}

TEST_F(WaitingTest, StatisticsCanBeWatched) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::WatchStatsRequest request;
  request.mutable_interval()->set_nanos(100'000'000);
  const auto reader = stats_->WatchStats(&context, request);
  v1::GetStatsResponse seen;
  ASSERT_TRUE(reader->Read(&seen));
  const uint64_t before = seen.devices(0).heaps(0).in_use();
  ASSERT_THAT(holder_->Ask("give-back most"), IsOk());
  ASSERT_OK_AND_ASSIGN(
      Process ctl, Process::Start({.command = {BuiltProgramPath("heapbrokerctl"), "--runtime-dir",
                                               runtime_dir(), "trim"}}));
  EXPECT_THAT(ctl.Wait(absl::Seconds(20)), IsOk());
  while (reader->Read(&seen) && seen.devices(0).heaps(0).in_use() == before) {
  }
  EXPECT_EQ(seen.devices(0).heaps(0).in_use(), 0u);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a client's allocator keeps idle: it counts as idle, goes home when another
// process needs it, and is gone with the client.
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/daemon_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

constexpr uint64_t kMiB = 1 << 20;
constexpr const char* kForEver = "0";

class CachedBlocksTest : public DaemonFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemon({"--heap-budget=64MiB"}));
    holder_ = StartClient("holder");
    asker_ = StartClient("asker");
    ASSERT_TRUE(holder_ != nullptr && asker_ != nullptr);
  }

  void StartCache(const std::string& max_idle_milliseconds) {
    ASSERT_THAT(holder_->Ask(absl::StrCat("dynamic-start ", max_idle_milliseconds)), IsOk());
  }
  void Allocate(const std::string& name, uint64_t bytes) {
    ASSERT_THAT(holder_->Ask(absl::StrCat("dynamic-allocate ", name, " ", bytes)), IsOk());
  }
  void Free(const std::string& name) {
    ASSERT_THAT(holder_->Ask(absl::StrCat("dynamic-free ", name)), IsOk());
  }
  uint64_t InHolder(const std::string& what) {
    const auto answer = holder_->Ask("dynamic");
    EXPECT_THAT(answer, IsOk());
    return answer.ok() ? NumberOf(*answer, what) : 0;
  }
  uint64_t IdleInClients() { return Stats().devices(0).heaps(0).idle_in_clients(); }

  std::unique_ptr<ClientProcess> holder_;
  std::unique_ptr<ClientProcess> asker_;
};

TEST_F(CachedBlocksTest, OnlyWhollyFreeBlocksCountAsIdleInTheClient) {
  ASSERT_NO_FATAL_FAILURE(StartCache(kForEver));
  Allocate("small", 1000);
  Allocate("large", 20 * kMiB);
  EXPECT_EQ(InHolder("blocks"), 2u);
  EXPECT_EQ(IdleInClients(), 0u);
  Free("large");
  const uint64_t idle = InHolder("idle");
  EXPECT_GE(idle, 20 * kMiB);
  EXPECT_TRUE(WaitFor([&] { return IdleInClients() == idle; }));
  // All of it is still leased.
  EXPECT_EQ(Held().leased_blocks, 2u);
  Allocate("large", 19 * kMiB);
  EXPECT_TRUE(WaitFor([&] { return IdleInClients() == 0; }));
  EXPECT_EQ(Held().leased_blocks, 2u) << "the idle one was used again";
}

TEST_F(CachedBlocksTest, WhatIsIdleGoesToAnotherProcessThatDoesNotEvenWait) {
  ASSERT_NO_FATAL_FAILURE(StartCache(kForEver));
  Allocate("used", 1000);
  Allocate("large", 48 * kMiB);
  Free("large");
  ASSERT_TRUE(WaitFor([&] { return IdleInClients() >= 48 * kMiB; }));
  // The daemon waits for those whom it asks, and only as long as it gave them.
  EXPECT_THAT(asker_->Ask(absl::StrCat("allocate wanted ", 32 * kMiB, " wait=0")), IsOk());
  EXPECT_GE(InHolder("returned"), 48 * kMiB);
  EXPECT_EQ(InHolder("idle"), 0u);
  EXPECT_TRUE(WaitFor([&] { return IdleInClients() == 0; }));
  // What is in use stayed.
  EXPECT_EQ(InHolder("blocks"), 1u);
}

TEST_F(CachedBlocksTest, WhatIsInUseIsNotGivenToAnotherProcess) {
  ASSERT_NO_FATAL_FAILURE(StartCache(kForEver));
  Allocate("large", 48 * kMiB);
  EXPECT_THAT(asker_->Ask(absl::StrCat("allocate wanted ", 32 * kMiB, " wait=0")),
              StatusIs(StatusCode::kResourceExhausted, "refused=1"));
}

TEST_F(CachedBlocksTest, GrowthFallsBackToTheExactSize) {
  ASSERT_NO_FATAL_FAILURE(StartCache(kForEver));
  ASSERT_THAT(asker_->Ask(absl::StrCat("allocate most ", 40 * kMiB)), IsOk());
  // 24 MiB are left: 20 for this, and then the step would be 16.
  Allocate("large", 20 * kMiB);
  Allocate("small", 3 * kMiB);
  EXPECT_LE(InHolder("leased"), 24 * kMiB);
  EXPECT_THAT(holder_->Ask(absl::StrCat("dynamic-allocate more ", 2 * kMiB)),
              StatusIs(StatusCode::kResourceExhausted, ""));
}

TEST_F(CachedBlocksTest, WhatIsIdleForTooLongGoesHomeByItself) {
  ASSERT_NO_FATAL_FAILURE(StartCache("1"));
  Allocate("large", 48 * kMiB);
  Free("large");
  EXPECT_TRUE(WaitFor([&] { return Held().leased_blocks == 0; }));
  EXPECT_TRUE(WaitFor([&] { return IdleInClients() == 0; }));
}

TEST_F(CachedBlocksTest, NothingIsLeftAfterTheClientsEnd) {
  ASSERT_NO_FATAL_FAILURE(StartCache(kForEver));
  Allocate("used", 1000);
  Allocate("large", 20 * kMiB);
  Free("large");
  EXPECT_THAT(holder_->Quit(), IsOk());
  EXPECT_TRUE(WaitFor([&] { return Held().client_sessions == 1; }));
  EXPECT_EQ(Held().leased_blocks, 0u);
  // The program's end has given all back, before the session's end would have: only then
  // the daemon keeps them for the next process of this user.
  EXPECT_EQ(Held().allocations, 2u);
  EXPECT_EQ(IdleInClients(), 0u);
}

TEST_F(CachedBlocksTest, NothingIsLeftAfterTheClientWasKilled) {
  ASSERT_NO_FATAL_FAILURE(StartCache(kForEver));
  Allocate("large", 20 * kMiB);
  Free("large");
  ASSERT_TRUE(WaitFor([&] { return IdleInClients() >= 20 * kMiB; }));
  ASSERT_THAT(holder_->process().Signal(SIGKILL), IsOk());
  EXPECT_TRUE(WaitFor([&] { return Held().leased_blocks == 0 && IdleInClients() == 0; }));
}

}  // namespace
}  // namespace heapbroker

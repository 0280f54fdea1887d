// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client's end, however it comes, gives back everything that it held, within a
// second.
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/process_facts.h"
#include "tests/support/sanitizer.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kPromised = kHasSanitizer ? absl::Seconds(5) : absl::Seconds(1);

class ClientEndTest : public DaemonFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemon());
    before_ = Held();
    descriptors_before_ = DaemonDescriptors();
  }

  // Everything as it was before the client came.
  bool AwaitAllBack() {
    return WaitFor([&] { return Held() == before_ && DaemonDescriptors() == descriptors_before_; },
                   kPromised);
  }

  Holdings before_;
  size_t descriptors_before_ = 0;
};

TEST_F(ClientEndTest, AKilledClientsHundredLeasesComeBackWithinASecond) {
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_THAT(client->Ask("hold 100 1000000"), IsOk());
  const Holdings held = Held();
  EXPECT_EQ(held.client_sessions, 1u);
  EXPECT_EQ(held.leased_blocks, 100u);
  EXPECT_EQ(held.allocations, 100u);
  EXPECT_GE(held.in_use, 100'000'000u);
  EXPECT_GE(DaemonDescriptors(), descriptors_before_ + 100);

  ASSERT_THAT(client->process().Signal(SIGKILL), IsOk());
  EXPECT_TRUE(AwaitAllBack()) << Held() << ", " << DaemonDescriptors() << " descriptors, "
                              << descriptors_before_ << " before";
  ASSERT_OK_AND_ASSIGN(const ExitStatus ended, client->process().Wait(kEndTimeout));
  EXPECT_EQ(ended, KilledBy(SIGKILL));
}

TEST_F(ClientEndTest, AForkedChildsCopyOfTheSocketDoesNotKeepTheSession) {
  const auto parent = StartClient();
  ASSERT_TRUE(parent != nullptr);
  ASSERT_THAT(parent->Ask("hold 3 1000000"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string forked, parent->Ask("fork"));
  const auto child = static_cast<pid_t>(NumberOf(forked, "child"));
  ASSERT_GT(child, 0);
  ASSERT_OK_AND_ASSIGN(const size_t childs_descriptors, OpenDescriptorCount(child));

  ASSERT_THAT(parent->process().Signal(SIGKILL), IsOk());
  EXPECT_TRUE(WaitFor([&] { return Held() == before_; }, kPromised)) << Held();
  // The child lives and has closed nothing.
  EXPECT_EQ(OpenDescriptorCount(child).value_or(0), childs_descriptors);
}

TEST_F(ClientEndTest, AClientThatQuitsLeavesOnlyWhatIsCachedForItsTenant) {
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_THAT(client->Ask("hold 100 1000000"), IsOk());
  ASSERT_OK_AND_ASSIGN(const ExitStatus ended, client->Quit());
  EXPECT_EQ(ended, Exited(0)) << client->process().ErrorOutput();
  EXPECT_TRUE(WaitFor([&] { return Held().client_sessions == 0; }, kPromised));
  EXPECT_EQ(Held().leased_blocks, 0u);
  // The cache keeps 64 blocks at most; the others are freed in the background.
  EXPECT_TRUE(WaitFor([&] { return Held().allocations == 64; }, kPromised)) << Held();
}

}  // namespace
}  // namespace heapbroker

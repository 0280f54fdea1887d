// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Memory never passes from one user to another. Two users need root.
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"

namespace heapbroker {
namespace {

constexpr uid_t kFirst = 1001;
constexpr uid_t kSecond = 1002;
constexpr uint64_t kSize = 32 << 20;

class TenantsTest : public DaemonFixture {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can run clients as two other users";
  }

  // One user's client that has a block full of bytes that are not zero.
  std::unique_ptr<ClientProcess> StartDirtyingClient() {
    auto client = StartClient("first", kFirst);
    if (client == nullptr) return nullptr;
    EXPECT_THAT(client->Ask(absl::StrCat("allocate a ", kSize)), IsOk());
    EXPECT_THAT(client->Ask(absl::StrCat("fill a 0 ", kSize, " 165")), IsOk());
    const auto fetched = client->Ask("fetch a");
    EXPECT_THAT(fetched, IsOk());
    first_memory_ = fetched.value_or("");
    return client;
  }

  void ExpectAnotherZeroedBlock(ClientProcess& client) {
    ASSERT_OK_AND_ASSIGN(const std::string got, client.Ask(absl::StrCat("allocate a ", kSize)));
    EXPECT_EQ(Hits(), 0u);
    ASSERT_OK_AND_ASSIGN(const std::string memory, client.Ask("fetch a"));
    EXPECT_NE(memory, first_memory_);
    EXPECT_GE(NumberOf(got, "allocated"), kSize);
    EXPECT_THAT(client.Ask("zeros a"), IsOk());
  }

  std::string first_memory_;
};

TEST_F(TenantsTest, AReleasedBlockStaysWithItsTenant) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--software-tenants=any", "--clear=always"}));
  const auto first = StartDirtyingClient();
  const auto second = StartClient("second", kSecond);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_THAT(first->Ask("give-back a"), IsOk());

  ExpectAnotherZeroedBlock(*second);
  // And the first one's block still waits for the first one.
  ASSERT_THAT(first->Ask(absl::StrCat("allocate b ", kSize)), IsOk());
  EXPECT_EQ(Hits(), 1u);
  EXPECT_EQ(first->Ask("fetch b").value_or(""), first_memory_);
}

TEST_F(TenantsTest, NothingOfAKilledClientReachesAnotherTenant) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--software-tenants=any", "--clear=always"}));
  const auto first = StartDirtyingClient();
  const auto second = StartClient("second", kSecond);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_THAT(first->process().Signal(SIGKILL), IsOk());
  ASSERT_TRUE(WaitFor([&] { return Held().allocations == 0; }));

  ExpectAnotherZeroedBlock(*second);
}

TEST_F(TenantsTest, SegmentsOfOneTenantDoNotExistForAnother) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--software-tenants=any"}));
  const auto first = StartClient("first", kFirst);
  const auto second = StartClient("second", kSecond);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  ASSERT_THAT(first->Ask("open s weights 100000"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string first_memory, first->Ask("fetch s"));
  ASSERT_THAT(first->Ask("fill s 0 100000 1"), IsOk());
  ASSERT_THAT(first->Ask("seal s"), IsOk());

  EXPECT_THAT(second->Ask("attach s weights"), StatusIs(absl::StatusCode::kNotFound, "weights"));
  ASSERT_OK_AND_ASSIGN(const std::string own, second->Ask("open s weights 200000"));
  EXPECT_EQ(NumberOf(own, "writer"), 1u);
  ASSERT_OK_AND_ASSIGN(const std::string second_memory, second->Ask("fetch s"));
  EXPECT_NE(second_memory, first_memory);
}

TEST_F(TenantsTest, ASoftwareDeviceServesOneTenantUnlessToldOtherwise) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const v1::GetStatsResponse stats = Stats();
  ASSERT_GT(stats.devices_size(), 0);
  if (!stats.devices(0).device().software()) GTEST_SKIP() << "the daemon found hardware";
  const auto first = StartClient("first", kFirst);
  ASSERT_TRUE(first != nullptr);
  ASSERT_OK_AND_ASSIGN(const auto second,
                       ClientProcess::Start({.runtime_dir = runtime_dir(), .uid = kSecond}));

  constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
  const auto refused = second->Ask("connect second");
  EXPECT_THAT(refused, StatusIs(kDenied, "software device"));
  EXPECT_THAT(refused, StatusIs(kDenied, "it serves uid 1001"));
  EXPECT_THAT(refused, StatusIs(kDenied, "--software-tenants=any"));
  EXPECT_THAT(first->Ask("allocate a 65536"), IsOk());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client that may have no more descriptors: what fails says so, soon, and nothing is
// lost by it.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class DescriptorLimitTest : public DaemonFixture {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartDaemon()); }
};

TEST_F(DescriptorLimitTest, AFetchFailsWithinASecondAndWorksLaterInTheSameSession) {
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_THAT(client->Ask("allocate a 100000"), IsOk());
  ASSERT_OK_AND_ASSIGN(const size_t before, OpenDescriptorCount(client->pid()));
  ASSERT_THAT(client->Ask("limit-descriptors"), IsOk());
  // More than once: what the daemon has sent in vain must not be in the way.
  for (int i = 0; i < 3; ++i) {
    const absl::Time begin = absl::Now();
    EXPECT_THAT(client->Ask("fetch a"), StatusIs(StatusCode::kResourceExhausted, "RLIMIT_NOFILE"));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(1));
  }
  // What needs no descriptor works.
  EXPECT_THAT(client->Ask("allocate b 100000"), IsOk());
  EXPECT_EQ(OpenDescriptorCount(client->pid()).value_or(0), before);
  ASSERT_THAT(client->Ask("unlimit-descriptors"), IsOk());
  EXPECT_THAT(client->Ask("fetch a"), IsOk());
  EXPECT_THAT(client->Ask("fetch b"), IsOk());
  EXPECT_THAT(client->Ask("fill a 0 100000 1"), IsOk());
  EXPECT_EQ(Held().client_sessions, 1u);
}

TEST_F(DescriptorLimitTest, AnImportFailsAndWorksLater) {
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_THAT(client->Ask("allocate a 100000"), IsOk());
  // Opens the device.
  ASSERT_THAT(client->Ask("fill a 0 100000 1"), IsOk());
  ASSERT_THAT(client->Ask("allocate b 100000"), IsOk());
  ASSERT_THAT(client->Ask("fetch b"), IsOk());
  ASSERT_OK_AND_ASSIGN(const size_t before, OpenDescriptorCount(client->pid()));
  ASSERT_THAT(client->Ask("limit-descriptors"), IsOk());
  EXPECT_THAT(client->Ask("fill b 0 100000 2"), StatusIs(StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(OpenDescriptorCount(client->pid()).value_or(0), before);
  ASSERT_THAT(client->Ask("unlimit-descriptors"), IsOk());
  EXPECT_THAT(client->Ask("fill b 0 100000 2"), IsOk());
  EXPECT_THAT(client->Ask("check a 0 100000 1"), IsOk());
}

TEST_F(DescriptorLimitTest, AFirstCallFailsAndALaterOneWorks) {
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  // gRPC has not connected yet.
  ASSERT_THAT(client->Ask("limit-descriptors"), IsOk());
  EXPECT_THAT(client->Ask("allocate a 100000"),
              StatusIs(StatusCode::kResourceExhausted, "RLIMIT_NOFILE"));
  ASSERT_THAT(client->Ask("unlimit-descriptors"), IsOk());
  // gRPC tries again a little later.
  EXPECT_TRUE(WaitFor([&] { return client->Ask("allocate a 100000").ok(); }));
  EXPECT_THAT(client->Ask("fetch a"), IsOk());
}

TEST_F(DescriptorLimitTest, ConnectingFailsAndWorksLater) {
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_OK_AND_ASSIGN(const size_t before, OpenDescriptorCount(client->pid()));
  ASSERT_THAT(client->Ask("limit-descriptors"), IsOk());
  EXPECT_THAT(client->Ask("connect again"), StatusIs(StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(OpenDescriptorCount(client->pid()).value_or(0), before);
  ASSERT_THAT(client->Ask("unlimit-descriptors"), IsOk());
  EXPECT_THAT(client->Ask("connect again"), IsOk());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Nothing adds up over many rounds.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

class EnduranceTest : public DaemonFixture {};

TEST_F(EnduranceTest, TwoThousandRoundsOfLeaseImportReleaseCostNoDescriptors) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  // Opens the device, and the connections.
  ASSERT_THAT(client->Ask("cycle 10 1000000"), IsOk());
  const Holdings held = Held();
  const size_t daemon_descriptors = DaemonDescriptors();
  ASSERT_OK_AND_ASSIGN(const size_t client_descriptors, OpenDescriptorCount(client->pid()));

  ASSERT_OK_AND_ASSIGN(const std::string done,
                       client->Ask("cycle 2000 1000000", absl::Seconds(100)));
  EXPECT_EQ(done, "imports=0 leaked=0");
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(DaemonDescriptors(), daemon_descriptors);
  EXPECT_EQ(OpenDescriptorCount(client->pid()).value_or(0), client_descriptors);
}

}  // namespace
}  // namespace heapbroker

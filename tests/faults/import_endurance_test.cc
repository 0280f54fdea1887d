// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Rounds of lease, import and release: neither the daemon nor its client, nor the
// driver below either of them, is left with more than it had.
#include <unistd.h>

#include <cstdint>

#include "gmock/gmock.h"
#include "tests/faults/daemon_under_faults.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

class ImportEnduranceTest : public DaemonUnderFaults {
 protected:
  void Rounds(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK_AND_ASSIGN(Lease lease, Allocate(KiB(64)));
      ASSERT_THAT(Import(lease), IsOk());
      ASSERT_THAT(lease.Release(), IsOk());
    }
  }
};

TEST_F(ImportEnduranceTest, TenThousandRoundsLeaveNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(""));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(""));
  // Opens what stays: the device, the connections, a block in the daemon's pool.
  constexpr int kFirst = 10;
  ASSERT_NO_FATAL_FAILURE(Rounds(kFirst));
  const Holdings held = Held();
  const uint64_t daemon_descriptors = Stats().open_descriptors();
  ASSERT_OK_AND_ASSIGN(const size_t descriptors, OpenDescriptorCount(getpid()));
  EXPECT_GT(daemon_descriptors, 0u);

  constexpr int kRounds = 10'000;
  ASSERT_NO_FATAL_FAILURE(Rounds(kRounds));
  EXPECT_EQ(Held(), held);
  EXPECT_EQ(Stats().open_descriptors(), daemon_descriptors);
  EXPECT_EQ(OpenDescriptorCount(getpid()).value_or(0), descriptors);
  const faults::DeviceCounters client = client_file().Device("default");
  EXPECT_EQ(client.CallsOf(faults::Function::kImport), uint64_t{kFirst + kRounds});
  EXPECT_EQ(client.live_allocations, 0u);
  EXPECT_EQ(client.peak_allocations, 1u);
  EXPECT_EQ(daemon_file().Device("default").live_allocations, held.allocations);
}

}  // namespace
}  // namespace heapbroker

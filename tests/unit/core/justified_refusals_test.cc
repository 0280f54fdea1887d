// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Nobody is refused what would fit: cases that random traces have found.
#include <vector>

#include "daemon/core/device_broker.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using JustifiedRefusalsTest = CoreTest;

// Device memory on the first heap, memory for the host on the second.
DeviceInfo TwoHeaps() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps.push_back({GiB(1), false});
  info.memory_types.push_back(info.memory_types.front());
  info.memory_types[0].host_visible = info.memory_types[0].host_cached = false;
  info.memory_types[1].heap = 1;
  info.memory_types[1].device_local = false;
  return info;
}

BlockRequest AskOn(uint32_t memory_type, Bytes size) {
  BlockRequest request;
  request.size = size;
  request.memory = MemoryTypeIndex{memory_type};
  return request;
}

TEST_F(JustifiedRefusalsTest, ADeadlineThatHasPassedIsNone) {
  Start(MiB(100), TwoHeaps());
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const Grant held, Allocate(bob, {AskOn(1, MiB(60))}));
  AllocateRequest waits = AllocateOf({AskOn(0, MiB(50)), AskOn(1, MiB(50))});
  waits.wait_until = clock_.Now() + absl::Seconds(10);
  ASSERT_THAT(broker_->Allocate(alice, NewCall(), waits), IsOk());
  // What the first in the queue lacks now is on the other heap.
  ASSERT_THAT(Allocate(bob, {AskOn(0, MiB(60))}), IsOk());
  ASSERT_THAT(Release(bob, held.blocks[0].id), IsOk());
  ASSERT_EQ(broker_->Stats().heaps[1].waiting_requests, 1u);
  AllocateRequest late = AllocateOf({AskOn(1, MiB(10))});
  late.wait_until = clock_.Now() - absl::Seconds(1);
  EXPECT_THAT(broker_->Allocate(bob, NewCall(), late), IsOk());
}

TEST_F(JustifiedRefusalsTest, RoundingTheFirstBlocksUpDoesNotCostTheLastItsPlace) {
  Start(MiB(16));
  const SessionId alice = NewSession(kAlice);
  // Rounded up it takes half a mebibyte more than it asks for.
  ASSERT_OK_AND_ASSIGN(const Grant grant,
                       Allocate(alice, {Ask(MiB(8) + Bytes(1)), Ask(MiB(8) - Bytes(1))}));
  EXPECT_EQ(grant.blocks.size(), 2u);
  EXPECT_EQ(Heap().in_use, MiB(16));
  CheckSums();
}

}  // namespace
}  // namespace heapbroker

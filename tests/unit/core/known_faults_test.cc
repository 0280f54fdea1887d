// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Faults that were reported in public against software like this one: the same
// situations here. The numbers are those of the project's list of such faults.
#include <set>
#include <utility>
#include <vector>

#include "daemon/core/refusal.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class KnownFaultsTest : public CoreTest {
 protected:
  // What a refusal says of its cause.
  static Refusal Of(const absl::Status& status) {
    const std::optional<Refusal> refusal = RefusalOf(status);
    EXPECT_TRUE(refusal.has_value()) << status;
    return refusal.value_or(Refusal());
  }
};

// More allocations than maxMemoryAllocationCount.
TEST_F(KnownFaultsTest, S4_TheDriverNeverSeesMoreAllocationsThanItAllows) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(64);
  Start(MiB(512), SimulatedDeviceInfo(), options);
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  std::vector<std::pair<SessionId, BlockId>> held;
  for (int i = 0; i < 200; ++i) {
    const SessionId session = i % 2 == 0 ? alice : bob;
    const auto block = Allocate(session, KiB(4));
    if (block.ok()) {
      held.emplace_back(session, block->id);
    } else {
      EXPECT_THAT(block, StatusIs(StatusCode::kResourceExhausted, "64 of 64 allocations"));
    }
    // Idle blocks are allocations, too.
    if (i % 7 == 0) {
      ASSERT_THAT(Release(held.back().first, held.back().second), IsOk());
      held.pop_back();
    }
  }
  EXPECT_EQ(held.size(), 64u);
  EXPECT_EQ(device_->counts().peak_live, 64u);
  CheckSums();
}

// The driver fails below the largest size that it advertises.
TEST_F(KnownFaultsTest, S5_ASizeThatTheDriverOnlyAdvertisesIsRefusedAndTheNextOneWorks) {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps[0].size = GiB(8);
  info.max_allocation_size = GiB(4);
  Start(GiB(7), info);
  const SessionId alice = NewSession(kAlice);
  const DeviceStats before = broker_->Stats();
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 1);
  const auto refused = Allocate(alice, GiB(4));
  const Refusal refusal = Of(refused.status());
  EXPECT_EQ(refusal.limit, LimitKind::kDriver);
  EXPECT_EQ(refusal.requested, GiB(4).count());
  EXPECT_EQ(Heap().smallest_driver_refusal, GiB(4));
  ASSERT_EQ(turns_.warnings().size(), 1u) << "is told to whoever runs the daemon";
  EXPECT_EQ(Heap().in_use, Bytes());
  EXPECT_EQ(Pool().total(), Bytes());
  EXPECT_EQ(broker_->Stats().allocations, before.allocations);
  EXPECT_THAT(Allocate(alice, GiB(1)), IsOk());
  CheckSums();
}

// A driver that never fails, and loses the device later.
TEST_F(KnownFaultsTest, S6_StopsAtItsOwnBudgetWhereTheDriverWouldGiveMore) {
  Start(MiB(800));
  const SessionId alice = NewSession(kAlice);
  size_t granted = 0;
  for (int i = 0; i < 20; ++i) {
    const auto block = Allocate(alice, MiB(100));
    if (block.ok()) {
      ++granted;
    } else {
      EXPECT_EQ(Of(block.status()).limit, LimitKind::kHeapBudget);
    }
  }
  EXPECT_GE(granted, 7u);
  EXPECT_LE(device_->counts().peak_bytes, MiB(800));
  CheckSums();
}

// Fresh memory that shows another application's data.
TEST_F(KnownFaultsTest, S8_MemoryThatATenantHasHadNeverReachesAnother) {
  Start(MiB(300));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  std::set<std::shared_ptr<const ExportedHandle>> of_alice;
  std::vector<BlockId> blocks;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(64)));
    ASSERT_OK_AND_ASSIGN(const FetchedBlock fetched, broker_->Fetch(alice, block.id));
    of_alice.insert(fetched.exported);
    blocks.push_back(block.id);
  }
  // Two are released, the others are held at the session's end.
  ASSERT_THAT(broker_->Release(alice, {blocks[0], blocks[1]}), IsOk());
  broker_->EndSession(alice);
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(bob, MiB(64)));
    ASSERT_OK_AND_ASSIGN(const FetchedBlock fetched, broker_->Fetch(bob, block.id));
    EXPECT_FALSE(of_alice.contains(fetched.exported));
  }
  EXPECT_EQ(Pool().hits, 0u);
  CheckSums();
}

TEST_F(KnownFaultsTest, S8_AFailedClearRefusesTheLeaseAndTheBlockIsNeverSeenAgain) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock first, Allocate(alice, MiB(1)));
  // Held, so that nothing else can lie where it did.
  ASSERT_OK_AND_ASSIGN(const FetchedBlock memory, broker_->Fetch(alice, first.id));
  ASSERT_THAT(Release(alice, first.id), IsOk());
  device_->FailClears(absl::InternalError("fence"), 1);
  BlockRequest zeroed = Ask(MiB(1));
  zeroed.zeroed = true;
  EXPECT_THAT(Allocate(alice, {zeroed}), StatusIs(StatusCode::kInternal, "fence"));
  EXPECT_EQ(broker_->Holdings(alice).leased_blocks, 0u);
  EXPECT_EQ(Pool().idle_blocks, 0u);
  EXPECT_EQ(Pool().not_kept[static_cast<size_t>(NotKeptReason::kUncleanEnd)], 1u);
  // Not even while it is still on its way to be freed.
  const CallId call = StartAllocate(alice, MiB(1));
  ASSERT_TRUE(executor_.RunAllocation());
  ASSERT_TRUE(IsGranted(call));
  EXPECT_NE(MemoryOf(alice, events_.grant(call)->blocks[0].id), memory.exported.get());
  executor_.RunAll();
  CheckSums();
}

// Plenty is free, but in pieces.
TEST_F(KnownFaultsTest, S9_ARefusalNamesTheLargestThatCouldBeHadAndAllThatIsFree) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock large, Allocate(alice, MiB(256)));
  ASSERT_THAT(Release(alice, large.id), IsOk());
  for (int i = 0; i < 32; ++i) ASSERT_THAT(Allocate(alice, MiB(1)), IsOk());
  // The large block is not given away for little, and not in the way either.
  EXPECT_EQ(Pool().idle, MiB(256));
  const auto refused = Allocate(bob, MiB(500));
  const Refusal refusal = Of(refused.status());
  EXPECT_EQ(refusal.free, MiB(480).count());
  EXPECT_EQ(refusal.largest_now, MiB(480).count());
  EXPECT_THAT(refused,
              StatusIs(StatusCode::kResourceExhausted,
                       "480.0 MiB free or idle, of which one request could get 480.0 MiB"));
  EXPECT_THAT(Allocate(bob, MiB(480)), IsOk());
  CheckSums();
}

// Only equal sizes are used again, and the cache grows without end.
TEST_F(KnownFaultsTest, S10_TenThousandSizesNeitherFailNorFillTheHeap) {
  Start(GiB(1));
  const SessionId alice = NewSession(kAlice);
  for (uint64_t i = 0; i < 10000; ++i) {
    const auto block = Allocate(alice, MiB(1) + KiB(4 * i));
    ASSERT_THAT(block, IsOk()) << i;
    ASSERT_THAT(Release(alice, block->id), IsOk());
    const PoolStats pool = Pool();
    ASSERT_LE(pool.idle_blocks, pool.limits.max_free_allocation_count);
    ASSERT_LE(pool.idle, Heap().budget);
  }
  EXPECT_GT(Pool().hits, 9000u) << "sizes that are nearly equal share blocks";
  executor_.RunAll();
  CheckSums();
}

// What is asked for in addition is more than what is left.
TEST_F(KnownFaultsTest, S11_RoundingUpIsGivenUpBeforeARequestFails) {
  Start(MiB(64));
  const SessionId alice = NewSession(kAlice);
  ASSERT_THAT(Allocate(alice, MiB(30)), IsOk());
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(33)));
  EXPECT_EQ(block.allocation_size, MiB(33)) << "34 MiB are left, and it is rounded to 36";
  CheckSums();
}

TEST_F(KnownFaultsTest, S11_RoundingUpIsGivenUpWhereTheDriverHasNoMore) {
  Start(GiB(1));
  const SessionId alice = NewSession(kAlice);
  device_->FailAllocations(absl::ResourceExhaustedError("VK_ERROR_OUT_OF_DEVICE_MEMORY"), 1);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(33)));
  EXPECT_EQ(block.allocation_size, MiB(33));
  EXPECT_TRUE(turns_.warnings().empty());
  CheckSums();
}

// Sizes near 2^64 wrap when they are rounded up.
TEST_F(KnownFaultsTest, S12_NoSizeOrAlignmentWraps) {
  constexpr uint64_t k63 = uint64_t{1} << 63;
  std::vector<uint64_t> sizes = {0, k63 - 1, k63};
  for (uint64_t below = 513; below > 0; --below) sizes.push_back(uint64_t{0} - below);
  const std::vector<uint64_t> alignments = {0, 1, 3, 48, uint64_t{1} << 31, k63};
  for (const Bytes largest : {GiB(1), Bytes::Max()}) {
    DeviceInfo info = SimulatedDeviceInfo();
    info.max_allocation_size = largest;
    Start(GiB(1), info);
    const SessionId alice = NewSession(kAlice);
    for (uint64_t size : sizes) {
      for (uint64_t alignment : alignments) {
        for (size_t blocks : {1, 2}) {
          BlockRequest request = Ask(Bytes(size));
          request.alignment = Bytes(alignment);
          const auto outcome = broker_->Allocate(
              alice, NewCall(), AllocateOf(std::vector<BlockRequest>(blocks, request)));
          ASSERT_FALSE(outcome.ok()) << size << " aligned to " << alignment;
          if (outcome.status().code() == StatusCode::kResourceExhausted) {
            EXPECT_EQ(Of(outcome.status()).kind, RefusalKind::kNeverFits);
          } else {
            EXPECT_THAT(outcome, StatusIs(StatusCode::kInvalidArgument, "blocks[0]."));
          }
        }
      }
    }
    EXPECT_EQ(executor_.allocations(), 0u) << "nothing of it reaches the device";
    EXPECT_EQ(Heap().peak_in_use, Bytes());
    for (uint64_t alignment : {0, 1, 4096}) {
      BlockRequest request = Ask(Bytes(1));
      request.alignment = Bytes(alignment);
      EXPECT_THAT(Allocate(alice, {request}), IsOk());
    }
    EXPECT_THAT(broker_->OpenSegment(alice, NewCall(),
                                     {"s", OpenMode::kCreateOrAttach, Bytes::Max(), MemoryKind()}),
                StatusIs(largest == Bytes::Max() ? StatusCode::kResourceExhausted
                                                 : StatusCode::kInvalidArgument,
                         ""));
    CheckSums();
  }
}

// Freed bytes are subtracted twice, and a counter wraps.
TEST_F(KnownFaultsTest, S13_TheSecondReleaseFindsNothingAndChangesNothing) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(8)));
  ASSERT_THAT(Release(alice, block.id), IsOk());
  const PoolStats before = Pool();
  EXPECT_THAT(Release(alice, block.id), StatusIs(StatusCode::kNotFound, "holds no block"));
  EXPECT_EQ(Pool().idle, before.idle);
  EXPECT_EQ(Pool().leased, before.leased);
  EXPECT_EQ(Heap().in_use, MiB(8));
  ASSERT_THAT(broker_->Trim({}), IsOk());
  EXPECT_THAT(Release(alice, block.id), StatusIs(StatusCode::kNotFound, "holds no block"));
  executor_.RunAll();
  EXPECT_THAT(Release(alice, block.id), StatusIs(StatusCode::kNotFound, "holds no block"));
  EXPECT_EQ(Heap().in_use, Bytes());
  CheckSums();
}

TEST_F(KnownFaultsTest, S13_AReleaseDuringTheCleanupOfItsSessionFindsNothing) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice);
  std::vector<BlockId> blocks;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const GrantedBlock block, Allocate(alice, MiB(8)));
    blocks.push_back(block.id);
  }
  ASSERT_THAT(Release(alice, blocks[0]), IsOk());
  broker_->EndSession(alice);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Heap().in_use, MiB(24 - 8 * static_cast<uint64_t>(i)));
    for (BlockId block : blocks) {
      EXPECT_THAT(Release(alice, block), StatusIs(StatusCode::kNotFound, "holds no block"));
    }
    broker_->EndSession(alice);
    CheckSums();
    if (i == 1) ASSERT_THAT(broker_->Trim({}), IsOk());
    ASSERT_TRUE(executor_.RunFree());
  }
  EXPECT_EQ(Heap().in_use, Bytes());
  EXPECT_EQ(device_->counts().frees, 3u);
  EXPECT_EQ(Pool().total(), Bytes());
}

// A second process sees everything as free.
TEST_F(KnownFaultsTest, S14_UsageCountsAllSessionsAlsoAfterOneHasEnded) {
  Start(MiB(512));
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  ASSERT_THAT(Allocate(alice, MiB(64)), IsOk());
  ASSERT_THAT(Allocate(bob, MiB(128)), IsOk());
  EXPECT_EQ(Heap().in_use, MiB(192));
  EXPECT_EQ(Heap().available, MiB(320));
  const SessionId carol = NewSession(TenantId(3));
  EXPECT_EQ(Of(Allocate(carol, MiB(512)).status()).free, MiB(320).count());
  broker_->EndSession(alice);
  EXPECT_EQ(Heap().in_use, MiB(192)) << "is not free before the device has freed it";
  executor_.RunAll();
  EXPECT_EQ(Heap().in_use, MiB(128));
  EXPECT_EQ(Heap().available, MiB(384));
  CheckSums();
}

}  // namespace
}  // namespace heapbroker

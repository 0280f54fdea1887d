// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What those that wait cost all others: bounded, whatever one tenant asks for.
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

constexpr size_t kBlocks = 256;  // Of one call.

class WaitingCostTest : public CoreTest {
 protected:
  WaitingCostTest() {
    Start(MiB(256));
    hog_ = NewSession(TenantId(7));
    EXPECT_THAT(Allocate(hog_, MiB(240)), IsOk());
  }
  AllocateRequest Many() const {
    AllocateRequest request = AllocateOf(std::vector<BlockRequest>(kBlocks, Ask(MiB(1))));
    request.wait_until = clock_.Now() + absl::Hours(1);
    return request;
  }

  SessionId hog_;
};

TEST_F(WaitingCostTest, AllSessionsOfATenantTogetherWaitForABoundedNumberOfBlocks) {
  size_t waiting = 0;
  for (int session = 0; session < 4; ++session) {
    const SessionId alice = NewSession(kAlice);
    for (int call = 0; call < 10; ++call) {
      const auto outcome = broker_->Allocate(alice, NewCall(), Many());
      if (outcome.ok()) {
        waiting += kBlocks;
      } else {
        EXPECT_THAT(outcome, StatusIs(StatusCode::kResourceExhausted,
                                      "4096 of 4096 blocks that one user's requests may wait for"));
      }
    }
  }
  EXPECT_EQ(waiting, kMaxWaitingBlocks);
  EXPECT_THAT(broker_->Allocate(NewSession(kBob), NewCall(), Many()), IsOk()) << "another tenant";
}

TEST_F(WaitingCostTest, WhoseOrdersEndMayWaitAgain) {
  const SessionId alice = NewSession(kAlice);
  std::vector<CallId> calls;
  for (size_t i = 0; i < kMaxWaitingBlocks / kBlocks; ++i)
    calls.push_back(CoreTest::Start(alice, Many()));
  ASSERT_THAT(broker_->Allocate(alice, NewCall(), Many()),
              StatusIs(StatusCode::kResourceExhausted, ""));
  broker_->Cancel(alice, calls[3]);
  EXPECT_THAT(broker_->Allocate(alice, NewCall(), Many()), IsOk());
  broker_->EndSession(alice);
  const SessionId next = NewSession(kAlice);
  for (size_t i = 0; i < kMaxWaitingBlocks / kBlocks; ++i) CoreTest::Start(next, Many());
}

TEST_F(WaitingCostTest, AHeadThatIsCancelledMakesWayAtOnce) {
  const SessionId alice = NewSession(kAlice), bob = NewSession(kBob);
  const CallId head = CoreTest::Start(alice, Many());
  const CallId behind = CoreTest::Start(alice, Many());
  const CallId small = StartWaiting(bob, KiB(64), absl::Hours(1));
  broker_->Cancel(alice, behind);
  EXPECT_FALSE(events_.Has(small));
  broker_->Cancel(alice, head);
  executor_.RunAll();
  EXPECT_TRUE(IsGranted(small));
}

}  // namespace
}  // namespace heapbroker

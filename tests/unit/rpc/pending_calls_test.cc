// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pending_calls.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(PendingCallsTest, BringsEachAnswerToItsCallOnce) {
  PendingCalls pending;
  int allocated = 0;
  int opened = 0;
  const CallId allocate =
      pending.AddAllocate([&](absl::StatusOr<Grant> grant) { allocated += grant.ok() ? 1 : 100; });
  const CallId open = pending.AddOpenSegment(
      [&](absl::StatusOr<SegmentView> view) { opened += view.ok() ? 1 : 100; });
  EXPECT_NE(allocate, open);
  pending.Deliver(AllocateDone{allocate, Grant()});
  pending.Deliver(AllocateDone{allocate, Grant()});
  EXPECT_EQ(pending.size(), 1u);
  pending.Deliver(OpenSegmentDone{open, SegmentView()});
  EXPECT_EQ(allocated, 1);
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(pending.size(), 0u);
}

TEST(PendingCallsTest, DropsTheHandlerOfACallThatWasAnsweredAtOnce) {
  PendingCalls pending;
  auto held = std::make_shared<int>(0);
  const CallId call = pending.AddAllocate([held](absl::StatusOr<Grant>) { ++*held; });
  pending.Remove(call);
  EXPECT_EQ(held.use_count(), 1);
  pending.Deliver(AllocateDone{call, Grant()});
  EXPECT_EQ(*held, 0);
}

TEST(PendingCallsTest, LetsAHandlerEnterAnotherCall) {
  PendingCalls pending;
  const CallId call = pending.AddAllocate(
      [&](absl::StatusOr<Grant>) { pending.AddAllocate([](absl::StatusOr<Grant>) {}); });
  pending.Deliver(AllocateDone{call, absl::CancelledError("gone")});
  EXPECT_EQ(pending.size(), 1u);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Where the core's events go.
#include "daemon/rpc/event_router.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr SessionId kSession(1);
constexpr SessionId kOther(2);

class EventRouterTest : public testing::Test {
 protected:
  WatchStream Stream(int& changes) {
    return {std::make_shared<WatchQueue>(), nullptr, [&changes] { ++changes; },
            [](const absl::Status&) {}};
  }

  PendingCalls pending_;
  WatchStreams watches_;
  EventRouter router_{pending_, watches_};
};

TEST_F(EventRouterTest, BringsAnswersToTheCallsThatWait) {
  int answers = 0;
  const CallId allocate = pending_.AddAllocate([&](absl::StatusOr<Grant>) { ++answers; });
  const CallId open = pending_.AddOpenSegment([&](absl::StatusOr<SegmentView>) { ++answers; });
  router_.Deliver(kSession, AllocateDone{allocate, Grant()});
  router_.Deliver(kSession, OpenSegmentDone{open, SegmentView()});
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(pending_.size(), 0u);
}

TEST_F(EventRouterTest, BringsTheRestToTheSessionsWatchOnly) {
  int changes = 0;
  int others_changes = 0;
  const WatchStream stream = Stream(changes);
  watches_.Begin(kSession, stream);
  const WatchStream others = Stream(others_changes);
  watches_.Begin(kOther, others);
  router_.Deliver(kSession, GiveBackWanted{0, 0, Bytes(7), absl::UnixEpoch()});
  router_.Deliver(kSession, SegmentSealed{0, SegmentId(64), "weights"});
  EXPECT_EQ(changes, 2);
  EXPECT_EQ(others_changes, 0);
  EXPECT_EQ(std::get<GiveBackWanted>(*stream.queue->Pop()).bytes, Bytes(7));
  EXPECT_EQ(std::get<SegmentSealed>(*stream.queue->Pop()).name, "weights");
  EXPECT_FALSE(others.queue->Pop().has_value());
}

TEST_F(EventRouterTest, DropsWhatNobodyListensTo) {
  router_.Deliver(kSession, SegmentSealed{0, SegmentId(64), "weights"});
  int changes = 0;
  const WatchStream stream = Stream(changes);
  const WatchStreams::Begun begun = watches_.Begin(kSession, stream);
  watches_.End(kSession, begun.number);
  router_.Deliver(kSession, SegmentSealed{0, SegmentId(64), "weights"});
  EXPECT_EQ(changes, 0);
  EXPECT_EQ(watches_.size(), 0u);
}

TEST_F(EventRouterTest, ASecondWatchReplacesTheFirstWhoseEndChangesNothing) {
  int first_changes = 0;
  int second_changes = 0;
  const WatchStreams::Begun first = watches_.Begin(kSession, Stream(first_changes));
  EXPECT_FALSE(first.replaced.has_value());
  const WatchStreams::Begun second = watches_.Begin(kSession, Stream(second_changes));
  ASSERT_TRUE(second.replaced.has_value());
  second.replaced->changed();
  EXPECT_EQ(first_changes, 1);
  watches_.End(kSession, first.number);
  router_.Deliver(kSession, SegmentSealed{0, SegmentId(64), "weights"});
  EXPECT_EQ(first_changes, 1);
  EXPECT_EQ(second_changes, 1);
}

}  // namespace
}  // namespace heapbroker

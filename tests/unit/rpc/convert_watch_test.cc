// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_watch.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

class ConvertWatchTest : public ServerFixture {
 protected:
  ConvertWatchTest() : ServerFixture(2) {}

  static void AddIdle(v1::WatchRequest& message, uint32_t device, uint32_t heap, uint64_t bytes) {
    v1::IdleBytes& idle = *message.add_idle();
    idle.set_device_index(device);
    idle.set_heap_index(heap);
    idle.set_bytes(bytes);
  }
};

TEST_F(ConvertWatchTest, GroupsWhatIsIdleByDevice) {
  v1::WatchRequest message;
  AddIdle(message, 1, 0, 7);
  ASSERT_OK_AND_ASSIGN(const IdleByDevice idle, IdleByDeviceOf(message, devices_));
  ASSERT_EQ(idle.size(), 2u);
  EXPECT_TRUE(idle[0].empty());
  ASSERT_EQ(idle[1].size(), 1u);
  EXPECT_EQ(idle[1][0].heap, 0u);
  EXPECT_EQ(idle[1][0].bytes, Bytes(7));
}

TEST_F(ConvertWatchTest, NamesTheDeviceOrHeapThatIsNotThere) {
  v1::WatchRequest message;
  AddIdle(message, 0, 0, 1);
  AddIdle(message, 2, 0, 1);
  EXPECT_THAT(IdleByDeviceOf(message, devices_),
              StatusIs(absl::StatusCode::kInvalidArgument, "idle[1].device_index: is 2"));
  message.mutable_idle(1)->set_device_index(1);
  message.mutable_idle(1)->set_heap_index(1);
  EXPECT_THAT(IdleByDeviceOf(message, devices_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "idle[1].heap_index: is 1; device 1 has 1 heaps"));
}

TEST_F(ConvertWatchTest, RefusesAHeapThatIsNamedTwice) {
  v1::WatchRequest message;
  AddIdle(message, 1, 0, 1);
  AddIdle(message, 0, 0, 1);
  AddIdle(message, 1, 0, 1);
  EXPECT_THAT(IdleByDeviceOf(message, devices_),
              StatusIs(absl::StatusCode::kInvalidArgument, "idle[2].heap_index: "));
}

TEST_F(ConvertWatchTest, TellsTheTimeThatIsLeft) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  const GiveBackWanted wanted{1, 2, Bytes(3), now + absl::Milliseconds(1500)};
  const v1::GiveBack message = WatchEventMessage(wanted, now).give_back();
  EXPECT_EQ(message.device_index(), 1u);
  EXPECT_EQ(message.heap_index(), 2u);
  EXPECT_EQ(message.bytes(), 3u);
  EXPECT_EQ(message.time().seconds(), 1);
  EXPECT_EQ(message.time().nanos(), 500'000'000);
  const v1::GiveBack late = WatchEventMessage(wanted, now + absl::Hours(1)).give_back();
  EXPECT_EQ(late.time().seconds(), 0);
  EXPECT_EQ(late.time().nanos(), 0);
}

TEST_F(ConvertWatchTest, NamesTheSegmentThatIsComplete) {
  const v1::WatchEvent message =
      WatchEventMessage(SegmentSealed{1, SegmentId(65), "weights"}, absl::UnixEpoch());
  EXPECT_EQ(message.segment_sealed().segment_id(), 65u);
  EXPECT_EQ(message.segment_sealed().name(), "weights");
  EXPECT_EQ(message.segment_sealed().device_index(), 1u);
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/devices.h"

#include <memory>
#include <vector>

#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/recorded_events.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

class DevicesTest : public ::testing::Test {
 protected:
  struct One {
    explicit One(uint32_t index) : device(InfoOf(index)) {
      LedgerOptions options;
      options.admission.heaps = {HeapLimit{MiB(100)}};
      broker = std::make_unique<DeviceBroker>(options,
                                              BrokerPorts{device, executor, events, clock, alarm});
    }
    static DeviceInfo InfoOf(uint32_t index) {
      DeviceInfo info = SimulatedDeviceInfo();
      info.index = index;
      return info;
    }
    SimulatedDevice device;
    ManualExecutor executor;
    RecordedEvents events;
    FakeClock clock;
    FakeAlarm alarm;
    std::unique_ptr<DeviceBroker> broker;
  };

  One first_{0}, second_{1};
  Devices devices_{{first_.broker.get(), second_.broker.get()}};
};

TEST_F(DevicesTest, TheFirstIsTheDefault) {
  EXPECT_EQ(*devices_.Named(std::nullopt), first_.broker.get());
  EXPECT_EQ(*devices_.Named(0), first_.broker.get());
  EXPECT_EQ(*devices_.Named(1), second_.broker.get());
  EXPECT_EQ(devices_.all().size(), 2u);
}

TEST_F(DevicesTest, SaysWhichDevicesThereAre) {
  for (uint32_t index : {2u, 64u, UINT32_MAX}) {
    EXPECT_THAT(devices_.Named(index),
                StatusIs(absl::StatusCode::kInvalidArgument, "this daemon has 2 devices"));
  }
}

TEST_F(DevicesTest, FindsTheDeviceThatGaveABlockOut) {
  const SessionId session(1);
  for (One* one : {&first_, &second_}) {
    ASSERT_THAT(one->broker->AddSession(session, TenantId(1001)), IsOk());
    AllocateRequest request;
    request.blocks.resize(1);
    request.blocks[0].size = MiB(1);
    ASSERT_THAT(one->broker->Allocate(session, CallId(1), request), IsOk());
    one->executor.RunAll();
    ASSERT_OK_AND_ASSIGN(const Grant grant, one->events.grant(CallId(1)));
    EXPECT_EQ(devices_.Of(grant.blocks[0].id), one->broker.get());
  }
}

TEST_F(DevicesTest, FindsNoDeviceForAnIdThatNoneGaveOut) {
  EXPECT_EQ(devices_.Of(BlockId(2)), nullptr);
  EXPECT_EQ(devices_.Of(SegmentId(63)), nullptr);
  EXPECT_EQ(devices_.Of(BlockId(UINT64_MAX)), nullptr);
  EXPECT_EQ(devices_.Of(SegmentId(64)), first_.broker.get());
  EXPECT_EQ(devices_.Of(SegmentId(65)), second_.broker.get());
}

}  // namespace
}  // namespace heapbroker

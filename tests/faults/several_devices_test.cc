// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One daemon, several devices: two that the fault layer makes of the machine's
// driver, so that one of them can be slow, wrong or full while the other is not.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "heapbroker/client.h"
#include "heapbroker/memory_refusal.h"
#include "tests/faults/daemon_under_faults.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

constexpr char kTwo[] = R"(
device left
  deviceName Left
  deviceType discrete
  deviceUUID 00000000-0000-0000-0000-000000000001
  memoryHeap 256MiB device_local
  memoryType 0 device_local|host_visible|host_coherent
device right
  deviceName Right
  deviceType discrete
  deviceUUID 00000000-0000-0000-0000-000000000002
  memoryHeap 64MiB device_local
  memoryType 0 device_local|host_visible|host_coherent
)";

class SeveralDevicesTest : public DaemonUnderFaults {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kTwo, {"--device=Left", "--device=Right"}));
    ASSERT_OK_AND_ASSIGN(client_, Client::Connect({.name = "two", .runtime_dir = runtime_dir()}));
  }
  void TearDown() override {
    client_ = nullptr;
    DaemonUnderFaults::TearDown();
  }

  absl::StatusOr<Lease> On(uint32_t device, Bytes size) {
    return client_->Allocate({.size = size}, {.device_index = device});
  }
  uint64_t InUse(int device) { return Stats().devices(device).heaps(0).in_use(); }

  std::shared_ptr<Client> client_;
};

TEST_F(SeveralDevicesTest, EachHasItsOwnBudgetPoolsAndAllocations) {
  ASSERT_EQ(client_->devices().size(), 2u);
  EXPECT_EQ(client_->devices()[0].name, "Left");
  EXPECT_EQ(client_->devices()[1].name, "Right");
  EXPECT_NE(client_->devices()[0].device_uuid, client_->devices()[1].device_uuid);
  ASSERT_OK_AND_ASSIGN(Lease left, On(0, MiB(100)));
  const absl::StatusOr<Lease> too_large = On(1, MiB(100));
  ASSERT_THAT(too_large, StatusIs(StatusCode::kResourceExhausted, ""));
  const std::optional<MemoryRefusal> refusal = RefusalOf(too_large.status());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_TRUE(refusal->never_fits);
  EXPECT_EQ(refusal->device_index, 1u);
  ASSERT_OK_AND_ASSIGN(Lease right, On(1, MiB(16)));
  EXPECT_GE(InUse(0), MiB(100).count());
  EXPECT_LT(InUse(1), MiB(64).count());
  EXPECT_EQ(daemon_file().Device("left").live_allocations, 1u);
  EXPECT_EQ(daemon_file().Device("right").live_allocations, 1u);
}

TEST_F(SeveralDevicesTest, ARequestThatNamesNoDeviceGetsTheFirst) {
  ASSERT_OK_AND_ASSIGN(Lease lease, client_->Allocate({.size = MiB(1)}));
  EXPECT_GT(InUse(0), 0u);
  EXPECT_EQ(InUse(1), 0u);
}

TEST_F(SeveralDevicesTest, ADeviceThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_THAT(On(2, MiB(1)), StatusIs(StatusCode::kInvalidArgument, "device_index"));
}

TEST_F(SeveralDevicesTest, SegmentsOfOneNameAreAnotherOnEachDevice) {
  ASSERT_OK_AND_ASSIGN(Segment left, client_->OpenSegment({.name = "weights", .size = MiB(1)}));
  ASSERT_OK_AND_ASSIGN(
      Segment right, client_->OpenSegment({.name = "weights", .size = MiB(2), .device_index = 1}));
  EXPECT_TRUE(left.is_writer());
  EXPECT_TRUE(right.is_writer());
}

TEST_F(SeveralDevicesTest, ADeviceThatAllocatesSlowlyDelaysNobodyOnAnother) {
  daemon_file().Write(absl::StrCat(kTwo, "  fault vkAllocateMemory:*:delay(5s)\n"));
  // The delay is on the device that was named last: the right one.
  auto slow = std::async(std::launch::async, [&] {
    return client_->Allocate({.size = MiB(4)}, {.device_index = 1, .timeout = absl::Seconds(30)});
  });
  // As many as would take minutes behind the slow one.
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK_AND_ASSIGN(Lease lease, On(0, MiB(1) + KiB(64) * static_cast<uint64_t>(i)));
  }
  EXPECT_EQ(slow.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "the slow device was to be slow for all of that";
  EXPECT_THAT(slow.get(), IsOk());
}

TEST_F(SeveralDevicesTest, ADeviceThatFailsLeavesTheOtherAlone) {
  daemon_file().Write(
      absl::StrCat(kTwo, "  fault vkAllocateMemory:*:error(VK_ERROR_DEVICE_LOST)\n"));
  EXPECT_THAT(On(1, MiB(4)), StatusIs(StatusCode::kUnavailable, ""));
  EXPECT_THAT(On(0, MiB(4)), IsOk());
  EXPECT_EQ(InUse(1), 0u);
}

}  // namespace
}  // namespace heapbroker

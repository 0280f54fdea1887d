// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Several devices in one process, of drivers that share nothing: lavapipe and
// SwiftShader, which tests/drivers/swiftshader --beside-lavapipe provides.

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/vulkan/device.h"
#include "daemon/vulkan/device_description.h"
#include "daemon/vulkan/vulkan_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

BlockClass AnyClassOf(const VulkanDevice& device) { return ClassesToTry(device.info()).front(); }

TEST(TwoDriversTest, DevicesHaveTheOrderOfTheirNamesAndTheirPlaceInItAsIndex) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"llvmpipe", "SwiftShader"}, {"swiftshader", "LLVMPIPE"}}) {
    ASSERT_OK_AND_ASSIGN(const OpenedDevices opened, OpenDevices(names, false));
    ASSERT_EQ(opened.devices.size(), 2U);
    for (uint32_t i = 0; i < 2; ++i) {
      const DeviceInfo& info = opened.devices[i].info();
      EXPECT_EQ(info.index, i);
      EXPECT_EQ(info.name.find("llvmpipe") != std::string::npos,
                (names[0] == "llvmpipe") == (i == 0))
          << info.name;
      EXPECT_NE(info.driver_uuid, Uuid());
    }
    EXPECT_THAT(opened.warnings, ElementsAre(HasSubstr("is a software device, as was asked for"),
                                             HasSubstr("is a software device, as was asked for")));
  }
}

TEST(TwoDriversTest, WithoutNamesSoftwareIsOneDeviceWithAWarning) {
  ASSERT_OK_AND_ASSIGN(const OpenedDevices opened, OpenDevices({}, false));
  EXPECT_EQ(opened.devices.size(), 1U);
  EXPECT_THAT(opened.warnings, ElementsAre(HasSubstr("used because no usable hardware device")));
  EXPECT_THAT(OpenDevices({}, true),
              StatusIs(absl::StatusCode::kFailedPrecondition, "no hardware device can be used"));
}

TEST(TwoDriversTest, NamingADeviceTwiceIsAnErrorThatQuotesBothNames) {
  const absl::Status status = OpenDevices({"llvmpipe", "0", "1"}, false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'llvmpipe' and '"), HasSubstr("are the same device")));
}

TEST(TwoDriversTest, EachServesByItselfWhileTheOtherComesAndGoes) {
  ASSERT_OK_AND_ASSIGN(OpenedDevices opened, OpenDevices({"llvmpipe", "SwiftShader"}, false));
  std::vector<std::unique_ptr<VulkanMemory>> memories;
  for (const VulkanDevice& device : opened.devices) {
    memories.push_back(
        VulkanMemory::Create(device, {ClearMode::kAlways, ClearPath::kTransfer}).value());
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < memories.size(); ++i) {
    threads.emplace_back([&, i] {
      const BlockClass block_class = AnyClassOf(opened.devices[i]);
      for (int round = 0; round < 50; ++round) {
        const absl::StatusOr<DeviceAllocation> made = memories[i]->Allocate(block_class, MiB(1));
        ASSERT_THAT(made, IsOk());
        memories[i]->Free(made->id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  memories.erase(memories.begin());
  EXPECT_THAT(memories.front()->Allocate(AnyClassOf(opened.devices[1]), MiB(1)), IsOk());
}

}  // namespace
}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/vulkan/snapshots.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;

DeviceSnapshot Gpu(uint8_t id) {
  return MakeSnapshot("GPU", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, id);
}

TEST(DeviceIdentityTest, SaysWhereADeviceIsAsFarAsTheDriverDoes) {
  DeviceSnapshot device = Gpu(1);
  EXPECT_EQ(FormatPlace(device), "");
  device.render_node = DeviceNode{226, 128};
  EXPECT_EQ(FormatPlace(device), "device node 226:128");
  device.pci = PciAddress{0, 0x1a, 0x0b, 3};
  EXPECT_EQ(FormatPlace(device), "PCI 0000:1a:0b.3, device node 226:128");
}

TEST(DeviceIdentityTest, DescribesADeviceByAllThatTellsItApart) {
  DeviceSnapshot device = Gpu(7);
  device.pci = PciAddress{0, 1, 0, 0};
  EXPECT_EQ(DescribeForPeople({device}, 0),
            "0 = 'GPU' (discrete GPU, UUID abcd0000-0000-0000-0000-000000000007, driver UUID "
            "ef000000-0000-0000-0000-000000000007, PCI 0000:01:00.0)");
}

TEST(DeviceIdentityTest, ListsWhyADeviceCannotBeUsed) {
  DeviceSnapshot old = Gpu(2);
  old.api_version = VK_API_VERSION_1_0;
  EXPECT_THAT(ListForPeople({Gpu(1), old}), HasSubstr("which has only Vulkan 1.0"));
}

TEST(DeviceIdentityTest, NoSinglePropertyMakesTwoDevicesOne) {
  DeviceSnapshot a = Gpu(1);
  a.pci = PciAddress{0, 1, 0, 0};
  EXPECT_TRUE(SameDevice(a, a));
  DeviceSnapshot b = a;
  b.pci = PciAddress{0, 2, 0, 0};
  EXPECT_FALSE(SameDevice(a, b));
  b = a;
  b.driver_uuid[0] ^= 1;
  EXPECT_FALSE(SameDevice(a, b));
  b = a;
  b.device_uuid[0] ^= 1;
  EXPECT_FALSE(SameDevice(a, b));
  b = a;
  b.render_node = DeviceNode{226, 128};
  EXPECT_FALSE(SameDevice(a, b));
}

TEST(DeviceIdentityTest, HardwareIsTheSameOnlyWhereBothDriversSayWhereItIs) {
  DeviceSnapshot a = Gpu(1), b = Gpu(2);
  EXPECT_FALSE(SameHardware(a, a)) << "nobody says where";
  a.pci = b.pci = PciAddress{0, 1, 0, 0};
  EXPECT_TRUE(SameHardware(a, b));
  b.pci = PciAddress{0, 1, 0, 1};
  EXPECT_FALSE(SameHardware(a, b));
  b.pci.reset();
  EXPECT_FALSE(SameHardware(a, b));
  a.render_node = b.render_node = DeviceNode{226, 128};
  EXPECT_TRUE(SameHardware(a, b)) << "one place that both say is enough";
}

}  // namespace
}  // namespace heapbroker

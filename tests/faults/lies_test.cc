// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/lies.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker::faults {
namespace {

constexpr VkDeviceSize kMax = std::numeric_limits<VkDeviceSize>::max();

DevicePlan Padded(Bytes granularity, Bytes extra) {
  DevicePlan plan;
  plan.padding = Padding{granularity, extra};
  return plan;
}

VkExtensionProperties Extension(const std::string& name) {
  VkExtensionProperties extension{};
  name.copy(extension.extensionName, sizeof(extension.extensionName) - 1);
  return extension;
}

std::vector<std::string> NamesOf(const std::vector<VkExtensionProperties>& extensions) {
  std::vector<std::string> names;
  for (const VkExtensionProperties& extension : extensions)
    names.emplace_back(extension.extensionName);
  return names;
}

TEST(LiesTest, PadsToTheGranularityAndAddsTheExtra) {
  const DevicePlan plan = Padded(KiB(64), Bytes(64));
  EXPECT_EQ(PaddedSize(plan, 1), 65536u + 64);
  EXPECT_EQ(PaddedSize(plan, 65536), 65536u + 64);
  EXPECT_EQ(PaddedSize(plan, 65537), 131072u + 64);
  EXPECT_EQ(PaddedSize(plan, (1 << 20) - 1), (1u << 20) + 64);
}

TEST(LiesTest, PaddingNeverWraps) {
  EXPECT_EQ(PaddedSize(Padded(KiB(64), Bytes(64)), kMax), kMax);
  EXPECT_EQ(PaddedSize(Padded(Bytes(1), Bytes(64)), kMax - 63), kMax);
  EXPECT_EQ(PaddedSize(Padded(Bytes(1), Bytes(64)), kMax - 64), kMax);
}

TEST(LiesTest, KnowsAPaddedSizeFromAnUnpaddedOne) {
  const DevicePlan plan = Padded(KiB(64), Bytes(64));
  EXPECT_TRUE(IsPaddedSize(plan, 65536 + 64));
  EXPECT_FALSE(IsPaddedSize(plan, 65536));
  EXPECT_FALSE(IsPaddedSize(plan, 64));
  EXPECT_FALSE(IsPaddedSize(plan, 1));
  EXPECT_TRUE(IsPaddedSize(DevicePlan{}, 1));
}

TEST(LiesTest, TranslatesMemoryTypesBothWays) {
  DevicePlan plan;
  plan.heaps = {{GiB(1), 0}};
  plan.memory_types = {{0, 0, 2}, {0, 0, 0}, {0, 0, 2}};
  EXPECT_EQ(PlannedTypeBits(plan, 0b101), 0b111u);
  EXPECT_EQ(PlannedTypeBits(plan, 0b100), 0b101u);
  EXPECT_EQ(PlannedTypeBits(plan, 0b010), 0u);
  EXPECT_EQ(RealType(plan, 0), 2u);
  EXPECT_EQ(RealType(plan, 1), 0u);
  EXPECT_EQ(PlannedTypeBits(DevicePlan{}, 0b101), 0b101u);
  EXPECT_EQ(RealType(DevicePlan{}, 7), 7u);
}

TEST(LiesTest, AnswersIdentitiesAndLimitsInEveryStructureThatHasThem) {
  DevicePlan plan;
  plan.device_uuid = PlannedUuid{7};
  plan.driver_uuid = PlannedUuid{8};
  plan.max_allocation_size = MiB(3);
  plan.max_buffer_size = MiB(4);
  plan.driver_id = VK_DRIVER_ID_MESA_RADV;
  VkPhysicalDeviceVulkan13Properties core13{};
  core13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
  maintenance4.pNext = &core13;
  VkPhysicalDeviceVulkan12Properties core12{};
  core12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  core12.pNext = &maintenance4;
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  driver.pNext = &core12;
  VkPhysicalDeviceMaintenance3Properties maintenance3{};
  maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  maintenance3.pNext = &driver;
  VkPhysicalDeviceVulkan11Properties core11{};
  core11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  core11.pNext = &maintenance3;
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  id.pNext = &core11;

  LieAboutPropertiesChain(plan, &id);
  EXPECT_EQ(id.deviceUUID[0], 7);
  EXPECT_EQ(id.driverUUID[0], 8);
  EXPECT_EQ(core11.deviceUUID[0], 7);
  EXPECT_EQ(core11.driverUUID[0], 8);
  EXPECT_EQ(core11.maxMemoryAllocationSize, MiB(3).count());
  EXPECT_EQ(maintenance3.maxMemoryAllocationSize, MiB(3).count());
  EXPECT_EQ(driver.driverID, VK_DRIVER_ID_MESA_RADV);
  EXPECT_EQ(core12.driverID, VK_DRIVER_ID_MESA_RADV);
  EXPECT_EQ(maintenance4.maxBufferSize, MiB(4).count());
  EXPECT_EQ(core13.maxBufferSize, MiB(4).count());
}

TEST(LiesTest, TakesExternalFeaturesAwayAndAddsOnlyTheDedicatedRestriction) {
  constexpr auto kOpaque = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  constexpr VkExternalMemoryFeatureFlags kBoth =
      VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  DevicePlan plan;
  plan.external[kOpaque] = {false, true, true};
  VkExternalMemoryProperties opaque{kBoth, kOpaque, kOpaque};
  LieAboutExternalMemory(plan, kOpaque, opaque);
  EXPECT_EQ(opaque.externalMemoryFeatures,
            VkExternalMemoryFeatureFlags{VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT |
                                         VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT});
  EXPECT_EQ(opaque.exportFromImportedHandleTypes, 0u);
  VkExternalMemoryProperties other{kBoth, kOpaque, kOpaque};
  LieAboutExternalMemory(plan, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, other);
  EXPECT_EQ(other.externalMemoryFeatures, kBoth);
}

TEST(LiesTest, HidesAndAddsExtensionsAndListsNoneTwice) {
  DevicePlan plan;
  plan.hidden_extensions = {"VK_A"};
  plan.added_extensions = {"VK_B", "VK_C"};
  const auto shown = LieAboutExtensions(plan, {Extension("VK_A"), Extension("VK_B")});
  EXPECT_THAT(NamesOf(shown), testing::ElementsAre("VK_B", "VK_C"));
}

}  // namespace
}  // namespace heapbroker::faults

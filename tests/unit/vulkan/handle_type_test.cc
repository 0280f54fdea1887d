// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/handle_type.h"

#include "gtest/gtest.h"
#include "tests/unit/vulkan/snapshots.h"

namespace heapbroker {
namespace {

constexpr VkExternalMemoryFeatureFlags kBothWays =
    VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
constexpr VkExternalMemoryHandleTypeFlags kOpaqueFd = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr VkExternalMemoryHandleTypeFlags kDmaBuf = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;

// As lavapipe 25 where there is udmabuf.
DeviceSnapshot Both() {
  DeviceSnapshot device = MakeSnapshot("a", VK_PHYSICAL_DEVICE_TYPE_CPU, 1);
  device.extensions.insert(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  device.opaque_fd_buffers = {kBothWays, kOpaqueFd, kOpaqueFd};
  device.dma_buf_buffers = {kBothWays, kDmaBuf, kDmaBuf};
  return device;
}

TEST(HandleClaimsTest, BelievesWhatHasExtensionAndFeatures) {
  EXPECT_EQ(ClaimedHandleTypes(Both()).usable, (HandleTypes{true, true}));
  EXPECT_EQ(ClaimedHandleTypes(Both()).dedicated_only, HandleTypes());
}

TEST(HandleClaimsTest, AnExtensionWithoutFeaturesIsNoClaim) {
  DeviceSnapshot device = Both();  // As lavapipe 25 where there is no udmabuf.
  device.dma_buf_buffers = {};
  EXPECT_EQ(ClaimedHandleTypes(device).usable, (HandleTypes{true, false}));
}

TEST(HandleClaimsTest, FeaturesWithoutTheExtensionAreNoClaim) {
  DeviceSnapshot device = Both();
  device.extensions.erase(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  EXPECT_EQ(ClaimedHandleTypes(device).usable, (HandleTypes{true, false}));
  device = Both();
  device.extensions.erase(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  EXPECT_FALSE(ClaimedHandleTypes(device).usable.any());
}

TEST(HandleClaimsTest, OneWayIsNoClaim) {
  for (VkExternalMemoryFeatureFlags one_way :
       {VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT, VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT}) {
    DeviceSnapshot device = Both();
    device.opaque_fd_buffers.externalMemoryFeatures = one_way;
    EXPECT_EQ(ClaimedHandleTypes(device).usable, (HandleTypes{false, true})) << one_way;
  }
}

TEST(HandleClaimsTest, AHandleTypeMustBeCompatibleWithItself) {
  DeviceSnapshot device = Both();
  device.dma_buf_buffers.compatibleHandleTypes = kOpaqueFd;
  device.opaque_fd_buffers.compatibleHandleTypes = kOpaqueFd | kDmaBuf;
  EXPECT_EQ(ClaimedHandleTypes(device).usable, (HandleTypes{true, false}));
}

TEST(HandleClaimsTest, DedicationIsToldForEachThatIsUsable) {
  DeviceSnapshot device = Both();
  device.opaque_fd_buffers.externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  device.dma_buf_buffers.externalMemoryFeatures =
      kBothWays | VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  EXPECT_EQ(ClaimedHandleTypes(device).dedicated_only, (HandleTypes{false, true}));
}

}  // namespace
}  // namespace heapbroker

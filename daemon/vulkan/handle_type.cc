// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/handle_type.h"

namespace heapbroker {
namespace {

bool Usable(const VkExternalMemoryProperties& properties, HandleType type) {
  constexpr VkExternalMemoryFeatureFlags kNeeded =
      VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  return (properties.externalMemoryFeatures & kNeeded) == kNeeded &&
         (properties.compatibleHandleTypes & ToVulkan(type)) != 0;
}

bool DedicatedOnly(const VkExternalMemoryProperties& properties) {
  return (properties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
}

}  // namespace

VkExternalMemoryHandleTypeFlagBits ToVulkan(HandleType type) {
  return type == HandleType::kDmaBuf ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
                                     : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

HandleClaims ClaimedHandleTypes(const DeviceSnapshot& device) {
  // Both handle types are given out by this extension's functions.
  if (!device.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) return {};
  HandleClaims claims;
  claims.usable.opaque_fd = Usable(device.opaque_fd_buffers, HandleType::kOpaqueFd);
  claims.usable.dma_buf = device.has_extension(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME) &&
                          Usable(device.dma_buf_buffers, HandleType::kDmaBuf);
  claims.dedicated_only.opaque_fd =
      claims.usable.opaque_fd && DedicatedOnly(device.opaque_fd_buffers);
  claims.dedicated_only.dma_buf = claims.usable.dma_buf && DedicatedOnly(device.dma_buf_buffers);
  return claims;
}

}  // namespace heapbroker

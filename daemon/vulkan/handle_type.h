// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Handle types in Vulkan's words, and which of them a device claims to have.
#ifndef DAEMON_VULKAN_HANDLE_TYPE_H_
#define DAEMON_VULKAN_HANDLE_TYPE_H_

#include <vulkan/vulkan.h>

#include "daemon/core/block_class.h"
#include "daemon/vulkan/device_snapshot.h"

namespace heapbroker {

inline constexpr HandleType kHandleTypes[] = {HandleType::kOpaqueFd, HandleType::kDmaBuf};

VkExternalMemoryHandleTypeFlagBits ToVulkan(HandleType type);

// What the driver says of buffers of kExternalBufferUsage.
struct HandleClaims {
  // Exported and imported by themselves. Whatever else they are said to be
  // compatible with is not used: an allocation is made for one handle type.
  HandleTypes usable;
  // Those of them that must be dedicated to one buffer.
  HandleTypes dedicated_only;
};

// Asks neither the extension list alone, which Mesa fills always, nor the feature
// flags alone: without the extension they cannot be used.
HandleClaims ClaimedHandleTypes(const DeviceSnapshot& device);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_HANDLE_TYPE_H_

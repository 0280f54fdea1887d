// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A few commands, now.
#ifndef CLIENT_SRC_ONE_SHOT_H_
#define CLIENT_SRC_ONE_SHOT_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// Records, submits to the context's queue, waits until the device is done. The
// queue must be free. Errors of VulkanStatus.
absl::Status RunOnce(const VulkanContext& context, absl::FunctionRef<void(VkCommandBuffer)> record);

}  // namespace heapbroker
#endif  // CLIENT_SRC_ONE_SHOT_H_

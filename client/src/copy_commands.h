// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Commands on their way to the device.
#ifndef CLIENT_SRC_COPY_COMMANDS_H_
#define CLIENT_SRC_COPY_COMMANDS_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/transport/process_mark.h"
#include "client/transport/turn.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

// Where copies are made. Its users take turns at submitting, as Vulkan demands.
struct CopyQueue {
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t family = 0;
  Turn* turn = nullptr;
};

// A command buffer that is used again and again, and the fence that says when the
// device is done with it. Not thread-safe.
class CopyCommands {
 public:
  // Errors of VulkanStatus, as those of the others.
  static absl::StatusOr<std::unique_ptr<CopyCommands>> Create(const CopyQueue& queue);
  // Waits for what is on its way. Does nothing in a forked child.
  ~CopyCommands();
  CopyCommands(const CopyCommands&) = delete;
  CopyCommands& operator=(const CopyCommands&) = delete;

  // Records and submits; nothing may be on its way. After an error nothing is.
  absl::Status Submit(absl::FunctionRef<void(VkCommandBuffer)> record);
  // Until the device is done with what was submitted, if anything was. Nothing is on
  // its way afterwards, also after an error.
  absl::Status Wait();

 private:
  explicit CopyCommands(const CopyQueue& queue) : queue_(queue) {}

  const ProcessMark process_;
  const CopyQueue queue_;
  VkFence fence_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  bool submitted_ = false;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_COPY_COMMANDS_H_

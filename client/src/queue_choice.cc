// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/queue_choice.h"

namespace heapbroker {
namespace {

std::optional<uint32_t> FindFamily(absl::Span<const VkQueueFamilyProperties> families,
                                   VkQueueFlags can, VkQueueFlags cannot) {
  for (uint32_t i = 0; i < families.size(); ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if (families[i].queueCount > 0 && (flags & can) == can && (flags & cannot) == 0) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<QueueChoice> ChooseQueues(absl::Span<const VkQueueFamilyProperties> families) {
  const std::optional<uint32_t> compute = FindFamily(families, VK_QUEUE_COMPUTE_BIT, 0);
  if (!compute) return std::nullopt;
  QueueChoice choice{.compute = {.family = *compute}};
  if (const std::optional<uint32_t> transfer = FindFamily(
          families, VK_QUEUE_TRANSFER_BIT, VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) {
    choice.transfer = QueuePlace{.family = *transfer};
  } else if (families[*compute].queueCount > 1) {
    choice.transfer = QueuePlace{.family = *compute, .index = 1};
  }
  return choice;
}

}  // namespace heapbroker

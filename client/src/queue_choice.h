// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which queues a device of the library's own has.
#ifndef CLIENT_SRC_QUEUE_CHOICE_H_
#define CLIENT_SRC_QUEUE_CHOICE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

struct QueuePlace {
  uint32_t family = 0;
  uint32_t index = 0;  // In the family.

  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
};

struct QueueChoice {
  QueuePlace compute;
  // Beside that one; unset where there is none that copies better than it does.
  std::optional<QueuePlace> transfer;
};

// Unset where nothing can compute. For transfers a family that can do nothing else is a
// copy engine of its own, which works while others compute; a second queue of the
// computing family at least does not wait behind what the first one has.
std::optional<QueueChoice> ChooseQueues(absl::Span<const VkQueueFamilyProperties> families);

}  // namespace heapbroker
#endif  // CLIENT_SRC_QUEUE_CHOICE_H_

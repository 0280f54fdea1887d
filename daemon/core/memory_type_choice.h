// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which memory types serve a request.
#ifndef DAEMON_CORE_MEMORY_TYPE_CHOICE_H_
#define DAEMON_CORE_MEMORY_TYPE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/device_info.h"
#include "daemon/core/requests.h"

namespace heapbroker {

absl::string_view MemoryKindName(MemoryKind kind);
// For people: "opaque descriptor", "dma-buf".
absl::string_view HandleTypeName(HandleType type);
// As a request would have named it.
std::string MemoryWishName(const MemoryWish& wish);

struct MemoryTypeChoice {
  uint32_t memory_type = 0;
  // How much of what is preferred it has: the more the better. Types of a lower
  // tier are for when the higher ones are full.
  int tier = 0;
};
struct MemoryTypeChoices {
  HandleType handle_type = HandleType::kOpaqueFd;
  std::vector<MemoryTypeChoice> types;  // The best first; never empty.
};

// All exportable types that have what the wish needs, those with most of what it
// prefers first, and among equals in the device's order: Vulkan puts the fastest
// first (specification, "Device Memory"). Without a handle type, an opaque
// descriptor if any of them can be exported as one, else a dma-buf.
//   INVALID_ARGUMENT     a memory type that the device does not have
//   FAILED_PRECONDITION  the device has none that will do; says what there is
absl::StatusOr<MemoryTypeChoices> ChooseMemoryTypes(const DeviceInfo& device,
                                                    const MemoryWish& wish,
                                                    std::optional<HandleType> handle_type);

}  // namespace heapbroker
#endif  // DAEMON_CORE_MEMORY_TYPE_CHOICE_H_

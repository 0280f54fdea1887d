// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which memory type serves a request.
#ifndef DAEMON_CORE_MEMORY_TYPE_CHOICE_H_
#define DAEMON_CORE_MEMORY_TYPE_CHOICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/device_info.h"
#include "daemon/core/requests.h"

namespace heapbroker {

absl::string_view MemoryKindName(MemoryKind kind);
// As a request would have named it.
std::string MemoryWishName(const MemoryWish& wish);

// The first exportable type, in the device's order, that has what the kind needs
// and the most of what it prefers. Vulkan orders types so that among equals the
// first one is the fastest (specification, "Device Memory").
//   FAILED_PRECONDITION  the device has no such type; says which kinds it has
absl::StatusOr<uint32_t> ChooseMemoryType(const DeviceInfo& device, MemoryKind kind);

}  // namespace heapbroker
#endif  // DAEMON_CORE_MEMORY_TYPE_CHOICE_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A memory type by its properties, as people name it: `device_local|host_visible`.
#ifndef DAEMON_CORE_MEMORY_TYPE_WISH_H_
#define DAEMON_CORE_MEMORY_TYPE_WISH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/device_info.h"

namespace heapbroker {

// What the key of a pool or of a request asks of a memory type: every field that
// is set must be there.
//
// Three names and two usages set nothing, because every type of every device has
// what they ask for: `device_visible` (a Vulkan device can use all memory that it
// lists), `optimal` (the first type that fits is what Vulkan's order puts first),
// and `transfer` and `dispatch` (each buffer of the daemon is made for both). The
// usage `mapping` is host_visible.
struct MemoryTypeWish {
  bool device_local = false;
  bool host_visible = false;
  bool host_coherent = false;
  bool host_cached = false;
  bool host_local = false;  // Host-visible, coherent and not device-local.
  bool transient = false;   // For requests marked so only; says nothing of the type.

  friend bool operator==(const MemoryTypeWish&, const MemoryTypeWish&) = default;
};

// Whether `type` has all that is wished for. Looks neither at `transient` nor at
// what can be exported.
bool Satisfies(const MemoryTypeInfo& type, const MemoryTypeWish& wish);

// Parses a heap key, `memory_type[;usage]`: names joined by `|`, in upper or lower
// case, with spaces around them; a part that is `*` or empty asks for nothing.
//   INVALID_ARGUMENT  quotes the text and the position, and lists the known names
absl::StatusOr<MemoryTypeWish> ParseMemoryTypeWish(absl::string_view text);
// The same for `key`, which must point into `text`: the error quotes all of `text`.
absl::StatusOr<MemoryTypeWish> ParseMemoryTypeWishIn(absl::string_view text, absl::string_view key);

// "device_local, host_local, ...", for errors.
std::string KnownMemoryTypeNames();

// The properties of a type by the same names: "device_local|host_visible".
std::string MemoryTypeText(const MemoryTypeInfo& type);

}  // namespace heapbroker
#endif  // DAEMON_CORE_MEMORY_TYPE_WISH_H_

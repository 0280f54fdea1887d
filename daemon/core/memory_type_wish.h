// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a pool's key, or a request, asks of a memory type.
#ifndef DAEMON_CORE_MEMORY_TYPE_WISH_H_
#define DAEMON_CORE_MEMORY_TYPE_WISH_H_

namespace heapbroker {

// All properties named must be there.
struct MemoryTypeWish {
  bool device_local = false;
  bool host_visible = false;
  bool host_coherent = false;
  bool host_cached = false;
  bool host_local = false;  // Host-visible, coherent and not device-local.
  bool transient = false;   // Of a pool: for requests marked so only.

  friend bool operator==(const MemoryTypeWish&, const MemoryTypeWish&) = default;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_MEMORY_TYPE_WISH_H_

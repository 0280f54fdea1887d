// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What sessions ask for and what they get, as plain values. The edges translate
// their messages into these and back.
#ifndef DAEMON_CORE_REQUESTS_H_
#define DAEMON_CORE_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_memory.h"
#include "heapbroker/units.h"

namespace heapbroker {

enum class MemoryKind { kDeviceLocal, kHostVisible, kHostCached, kDeviceLocalHostVisible };

struct BlockRequest {
  Bytes size;
  Bytes alignment;  // Zero, or a power of two up to kMaxAlignment.
  MemoryKind kind = MemoryKind::kDeviceLocal;
  bool zeroed = false;
};

// A block starts at offset 0 of an allocation, whose pages both a mapping and a
// device address follow; Vulkan promises nothing beyond a page.
inline constexpr Bytes kMaxAlignment = Bytes(4096);
inline constexpr size_t kMaxBlocksPerCall = 256;
// Calls of one session on one device that are answered later, at a time: what it
// can make the daemon remember, and look at again, is bounded.
inline constexpr size_t kMaxDeferredCalls = 256;

// A block as its holder sees it: the facts that an import needs.
struct GrantedBlock {
  BlockId id;
  Bytes size;             // As asked for; of a segment's block, its part of the segment.
  Bytes allocation_size;  // As the device was asked.
  BlockClass block_class;
};

// All blocks of an Allocate, in the order of the request.
struct Grant {
  std::vector<GrantedBlock> blocks;
};

// The answer comes later: exactly one Event with the CallId of the request.
struct Deferred {};

// XXH3-128, as the writer computed it.
struct Checksum {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

enum class OpenMode { kCreateOrAttach, kAttach, kAttachWait };

struct OpenSegmentRequest {
  std::string name;
  OpenMode mode = OpenMode::kCreateOrAttach;
  Bytes size;  // kCreateOrAttach only.
  MemoryKind kind = MemoryKind::kDeviceLocal;
};

// A segment as one of its sessions sees it.
struct SegmentView {
  SegmentId id;
  bool writer = false;
  Bytes size;
  std::vector<GrantedBlock> blocks;
  std::optional<Checksum> checksum;  // Set when sealed.
};

// A block's descriptor, for the session edge to send.
struct FetchedBlock {
  BlockId id;
  std::shared_ptr<const ExportedHandle> exported;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_REQUESTS_H_

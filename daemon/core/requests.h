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

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/block_class.h"
#include "daemon/core/device_memory.h"
#include "daemon/core/memory_type_wish.h"
#include "heapbroker/units.h"

namespace heapbroker {

enum class MemoryKind { kDeviceLocal, kHostVisible, kHostCached, kDeviceLocalHostVisible };
inline constexpr size_t kMemoryKindCount = 4;

// An exact Vulkan memory type of the device.
struct MemoryTypeIndex {
  uint32_t index = 0;
  friend bool operator==(const MemoryTypeIndex&, const MemoryTypeIndex&) = default;
};

// Which memory: for a purpose, with properties, or exactly one type.
using MemoryWish = std::variant<MemoryKind, MemoryTypeWish, MemoryTypeIndex>;

struct BlockRequest {
  Bytes size;
  Bytes alignment;  // Zero, or a power of two up to kMaxAlignment.
  MemoryWish memory = MemoryKind::kDeviceLocal;
  // Unset: an opaque descriptor where the memory has it, else a dma-buf.
  std::optional<HandleType> handle_type = std::nullopt;
  bool device_address = false;  // As in BlockClass.
  bool dedicated = false;       // As in BlockClass.
  bool transient = false;       // Short-lived: served by pools for such blocks, too.
  bool zeroed = false;
};

// Of the requests of one tenant the highest goes first; it means nothing between
// tenants.
enum class Priority : uint8_t { kLow, kNormal, kHigh };
inline constexpr size_t kPriorityCount = 3;

// One Allocate: all blocks or none.
struct AllocateRequest {
  // Repeating it returns the same grant, as long as any of its blocks is held.
  // Unset (0): every request is a new one.
  RequestId request_id;
  Priority priority = Priority::kNormal;
  // Until when it may wait for what others hold. Unset: granted or refused at
  // once, which includes the time that the device takes for its work.
  std::optional<absl::Time> wait_until = std::nullopt;
  std::vector<BlockRequest> blocks;
};

// A block starts at offset 0 of an allocation, whose pages both a mapping and a
// device address follow; Vulkan promises nothing beyond a page.
inline constexpr Bytes kMaxAlignment = Bytes(4096);
inline constexpr size_t kMaxBlocksPerCall = 256;
// Edges ask this before they look at a list: what is in one that is too long costs
// nobody anything.
//   INVALID_ARGUMENT  none, or too many; `field` is the list's name
absl::Status CheckBlockCount(absl::string_view field, size_t count);
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
  // kCreateOrAttach only, all of them.
  Bytes size;
  MemoryWish memory = MemoryKind::kDeviceLocal;
  std::optional<HandleType> handle_type = std::nullopt;
  // As in AllocateRequest, for the segment's memory. Waiting for its writer has
  // no such end: that is the call's own.
  std::optional<absl::Time> wait_until = std::nullopt;
};

// Memory that a client keeps in its own cache, as it says.
struct IdleReport {
  uint32_t heap = 0;
  Bytes bytes;
};

struct TrimRequest {
  std::optional<std::string> pool;  // By the name in PoolStats; unset: all of the device's.
  Bytes target;                     // Leased and idle bytes that may stay.
  bool segments = false;            // Unused ones, too.
};
struct TrimResult {
  Bytes bytes;  // On their way to be freed.
  uint64_t blocks = 0;
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

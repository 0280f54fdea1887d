// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a client asks for: blocks of its own, and segments.
#ifndef HEAPBROKER_REQUESTS_H_
#define HEAPBROKER_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/types.h"

namespace heapbroker {

// One block.
struct AllocationRequest {
  Bytes size{};       // From 1 to BrokerDevice::max_allocation_size.
  Bytes alignment{};  // Zero, or a power of two up to kMaxBlockAlignment.
  MemoryChoice memory = MemoryKind::kDeviceLocal;
  // How it is to leave the daemon. Unset: as an opaque descriptor where the memory
  // has that, else as a dma-buf.
  std::optional<HandleType> handle_type{};
  // Buffers in it can have device addresses: see BrokerDevice::device_addresses.
  bool device_address = false;
  // As a dedicated allocation of one buffer.
  bool dedicated = false;
  // Will be given back soon: the daemon's pools for such blocks may serve it, too.
  bool transient = false;
  // The block reads as zeros. Otherwise it may hold what the same tenant left in
  // it; never what another tenant did.
  bool zeroed = false;
};

// The largest AllocateOptions::request_id; those above are the library's.
inline constexpr uint64_t kMaxRequestId = (uint64_t{1} << 63) - 1;

// Of one call, for all of its blocks.
struct AllocateOptions {
  // Into Client::devices().
  uint32_t device_index = 0;
  Priority priority = Priority::kNormal;
  // How long the request may wait for memory that others hold; zero: it is granted
  // or refused at once. Unset: until shortly before the call's timeout.
  std::optional<absl::Duration> max_wait{};
  // Unset: ClientOptions::call_timeout. With no limit (absl::InfiniteDuration) a
  // request waits only where `max_wait` says so.
  std::optional<absl::Duration> timeout{};
  // Ends the wait early where it is set.
  std::shared_ptr<Cancellation> cancellation{};
  // 0: the library names the request itself, and undoes it where the call ends
  // without an answer, so that nothing stays leased that nobody knows of.
  //
  // 1 to kMaxRequestId, unlike any other that the session still holds blocks of:
  // the caller does that. After DEADLINE_EXCEEDED, UNAVAILABLE or CANCELLED the
  // same call again returns the same blocks, if they were granted, and
  // Client::UndoAllocate gives them back. Repeating a call that was answered makes
  // two Leases for one block, of which only one can be released.
  uint64_t request_id = 0;
};

struct SegmentOptions {
  enum class Mode { kCreateOrAttach, kAttach };
  // Unique inside the tenant: UTF-8, 1 to 128 bytes, no control characters.
  std::string name{};
  Mode mode = Mode::kCreateOrAttach;
  // kCreateOrAttach only; an existing segment must have the same size and memory.
  Bytes size{};
  MemoryChoice memory = MemoryKind::kDeviceLocal;
  // kCreateOrAttach only; as in AllocationRequest.
  std::optional<HandleType> handle_type{};
  // Into Client::devices(). Each device has its own segments.
  uint32_t device_index = 0;
  // kAttach only: wait for a segment that does not exist yet.
  bool wait = false;
  // How long to wait for another process that fills the segment, which may take
  // as long as loading a model does. No limit unless one is given.
  absl::Duration timeout = absl::InfiniteDuration();
  // How long a new segment may wait for memory that others hold; as in
  // AllocateOptions. Waiting for its writer is no part of this.
  std::optional<absl::Duration> max_wait{};
  // Ends the wait early where it is set.
  std::shared_ptr<Cancellation> cancellation{};
};

}  // namespace heapbroker
#endif  // HEAPBROKER_REQUESTS_H_

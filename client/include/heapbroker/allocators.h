// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a MemoryManager's allocators can do.
#ifndef HEAPBROKER_ALLOCATORS_H_
#define HEAPBROKER_ALLOCATORS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "heapbroker/buffer_range.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/types.h"

namespace heapbroker {

// Weights in a segment. Not thread-safe.
class HEAPBROKER_EXPORT ConstantAllocator {
 public:
  virtual ~ConstantAllocator() = default;

  virtual Bytes size() const = 0;

  // This process must Write everything and then Seal.
  virtual bool must_fill() const = 0;

  // Offsets at which the segment's blocks begin: {0} unless it is larger than
  // the device's largest block. No range crosses one of them.
  virtual const std::vector<Bytes>& block_starts() const = 0;

  // Bytes [offset, offset + size) of the segment. Empty ranges are fine
  // everywhere, the end included.
  //   OUT_OF_RANGE         past the end
  //   INVALID_ARGUMENT     offset + size passes 2^64 - 1, or crosses a block's start
  virtual absl::StatusOr<BufferRange> get_offset_address(Bytes offset, Bytes size) const = 0;

  // Copies host memory into the segment, through a staging block where the host
  // cannot map it; may cross blocks. Takes as long as the bytes do, unless `call` has a
  // timeout; the range then holds anything. Likewise below.
  //   OUT_OF_RANGE         past the end
  //   FAILED_PRECONDITION  not to be filled by this process, or sealed
  //   DEADLINE_EXCEEDED, CANCELLED  as `call` says
  //   or an error of Transfers::Upload
  virtual absl::Status Write(Bytes offset, const void* data, Bytes size,
                             const CallOptions& call = {}) = 0;

  // Says that all is written: computes the checksum and seals the segment. Work
  // on the device that writes it must have completed. Uses the queue.
  //   FAILED_PRECONDITION  not to be filled by this process, or sealed
  //   DEADLINE_EXCEEDED, CANCELLED  as `call` says; then it may be sealed
  //   or an error of Transfers::Download or Segment::Seal
  virtual absl::Status Seal(const CallOptions& call = {}) = 0;

  // What the contents are supposed to be; zeros until sealed.
  virtual Checksum checksum() const = 0;

  // Reads everything and compares it with checksum(). Uses the queue.
  //   DATA_LOSS            somebody wrote into the sealed segment, or it was sealed wrongly
  //   FAILED_PRECONDITION  not sealed yet
  //   DEADLINE_EXCEEDED, CANCELLED  as `call` says
  //   or an error of Transfers::Download
  virtual absl::Status Verify(const CallOptions& call = {}) = 0;
};

// Planned buffers by memory id. Thread-safe: it never changes.
class HEAPBROKER_EXPORT HierarchicalAllocator {
 public:
  virtual ~HierarchicalAllocator() = default;

  // Ids are those below this.
  virtual size_t memory_count() const = 0;

  // As planned.
  //   INVALID_ARGUMENT     no such memory id
  virtual absl::StatusOr<Bytes> memory_size(uint32_t memory_id) const = 0;

  // The id of the buffer that the plan calls `name`.
  //   NOT_FOUND            none has that name
  virtual absl::StatusOr<uint32_t> memory_id(absl::string_view name) const = 0;

  // `size` bytes from `offset` of the buffer `memory_id`; an empty range at the
  // exact end is fine.
  //   INVALID_ARGUMENT     no such memory id, or offset + size passes 2^64 - 1
  //   OUT_OF_RANGE         past the end of that buffer
  virtual absl::StatusOr<BufferRange> get_offset_address(uint32_t memory_id, Bytes offset,
                                                         Bytes size) const = 0;
};

// Cuts planned memory from front to back, in constant time and without a call;
// and, where the plan lets it overflow, further blocks after it. Not thread-safe.
class HEAPBROKER_EXPORT ArenaAllocator {
 public:
  virtual ~ArenaAllocator() = default;

  // `alignment` is a power of two, and it is the address that is aligned: the
  // host's where the memory is host-visible, else the device's where it has device
  // addresses. Of other memory nobody knows the address; there the offset in the
  // buffer is aligned, and the buffer's start is to kMaxBlockAlignment. (Mappings
  // and device addresses begin at whole pages on the drivers that this was tried
  // with, so that offsets are aligned as well, up to that.)
  //
  // An empty request succeeds and takes nothing. A refused request changes nothing.
  // Where a further block has to be leased, this makes a call and uses the queue,
  // and an error of Client::Allocate or VulkanImporter::Import is the answer if
  // that fails. It takes no options, as the allocators of executors do not: the time
  // is the plan's, and nobody can cancel it.
  //   INVALID_ARGUMENT     alignment is not a power of two
  //   RESOURCE_EXHAUSTED   does not fit; the message says what is left
  virtual absl::StatusOr<BufferRange> Allocate(Bytes size, Bytes alignment) = 0;

  // Everything that was handed out is free again; its users must be done. Made for
  // the end of a run. A further block that was not used since the Reset before is
  // given back, which makes a call and uses the queue; others stay for the next
  // run. So an arena that overflows in every run pays for the further lease once,
  // and one that no longer does keeps nothing.
  virtual void Reset() = 0;

  virtual Bytes size() const = 0;  // As planned.
  virtual Bytes used() const = 0;  // Padding and further blocks included.
  // Largest used() ever; Reset keeps it. What to plan so that nothing overflows.
  virtual Bytes peak() const = 0;
  // Of the further blocks that are leased now.
  virtual Bytes overflow() const = 0;
  // All of the planned memory, whatever of it is used. Of no buffer where size() is
  // zero.
  virtual BufferRange planned() const = 0;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_ALLOCATORS_H_

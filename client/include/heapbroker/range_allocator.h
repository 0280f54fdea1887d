// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Cuts ranges out of a block, a file or any other run of bytes.
#ifndef HEAPBROKER_RANGE_ALLOCATOR_H_
#define HEAPBROKER_RANGE_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heapbroker/export.h"
#include "heapbroker/units.h"

namespace heapbroker {

struct RangeAllocatorOptions {
  // Ranges are cut from [0, size). What does not fill a granule at the end is never
  // handed out.
  Bytes size{};
  // A power of two. Sizes are rounded up to it, and every offset is a multiple of it:
  // requests with this alignment or less need no padding, which is faster and wastes
  // less. Take the alignment that most requests have.
  Bytes granularity = Bytes(64);
  // Where offset 0 lies, for those who care how addresses are aligned: a multiple of
  // the granularity.
  uint64_t base_address = 0;
};

// Names one range that is allocated. No two of them in a process are ever equal,
// whichever allocator they are from, so a handle that was freed stays wrong for ever.
struct RangeHandle {
  uint64_t serial = 0;  // 0: names nothing.
  uint32_t slot = 0;

  friend bool operator==(const RangeHandle&, const RangeHandle&) = default;
};

struct AllocatedRange {
  Bytes offset{};
  RangeHandle handle{};
};

// allocated + free == size.
struct RangeAllocatorStats {
  Bytes size{};              // A multiple of the granularity.
  Bytes allocated{};         // Rounding included.
  Bytes peak_allocated{};    // Largest `allocated` ever.
  Bytes free{};              // Padding included: it can be handed out.
  Bytes largest_free{};      // The largest range that could be allocated at this moment.
  uint64_t allocations = 0;  // Ranges that are allocated, empty ones included.
  uint64_t free_ranges = 0;  // Never two next to each other.
};

// Two-level segregated fit: Allocate and Free take constant time, whatever is
// allocated. Free ranges are kept by size in classes 1/64 apart; a request takes the
// first range of its own class, if that fits, or else one of the next class that has
// any. A freed range is joined to its free neighbours at once.
//
// All bookkeeping lies outside the memory, which it never touches: the memory may be
// on a device, or not exist. It costs 32 bytes for each range, free or not.
//
// Not thread-safe.
class HEAPBROKER_EXPORT RangeAllocator {
 public:
  // A granularity that is no power of two, or of which the base address is no
  // multiple, is a mistake in the program, which ends it.
  explicit RangeAllocator(const RangeAllocatorOptions& options);
  ~RangeAllocator();
  RangeAllocator(RangeAllocator&& other) noexcept;
  RangeAllocator& operator=(RangeAllocator&& other) noexcept;

  // `size` bytes whose address, base_address + offset, is a multiple of `alignment`. An
  // empty request succeeds, takes no bytes, at whatever offset, and has to be freed as
  // any other.
  //   INVALID_ARGUMENT    alignment is not a power of two; 1 asks for none
  //   RESOURCE_EXHAUSTED  no free range fits; nothing has changed. Where more than 256
  //                       free ranges are less than 1/64 larger than the request and
  //                       its padding, one that fits may have been overlooked.
  absl::StatusOr<AllocatedRange> Allocate(Bytes size, Bytes alignment = Bytes(1));

  // As Allocate, for callers who ask elsewhere then: empty where that is refused, for
  // whatever reason, and without the cost of a message.
  std::optional<AllocatedRange> TryAllocate(Bytes size, Bytes alignment = Bytes(1));

  //   NOT_FOUND           no range of this allocator has the handle: it was freed
  //                       before, or is another allocator's. Nothing has changed.
  absl::Status Free(RangeHandle handle);

  // The size of an allocated range as it was rounded up.
  //   NOT_FOUND           as Free
  absl::StatusOr<Bytes> SizeOf(RangeHandle handle) const;

  // Nothing is allocated, not even an empty range.
  bool empty() const;

  // Visits the free ranges of the largest class that has any; all else is counted.
  RangeAllocatorStats Stats() const;

 private:
  class HEAPBROKER_LOCAL State;
  std::unique_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_RANGE_ALLOCATOR_H_

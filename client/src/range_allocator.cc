// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/range_allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "client/src/range_space.h"
#include "client/src/serial_numbers.h"

namespace heapbroker {
namespace {

// For all allocators of the process.
SerialNumbers serial_numbers(uint64_t{Range::kAllocated} << 32);

// What is rare stays out of the way of what is not: inside of it, it would cost every
// call registers.
ABSL_ATTRIBUTE_NOINLINE absl::Status UnknownRange() {
  return absl::NotFoundError(
      "no range that is allocated here has this handle: it was freed before, or it is another "
      "allocator's");
}

}  // namespace

class RangeAllocator::State {
 public:
  explicit State(const RangeAllocatorOptions& options)
      : granule_bits(std::countr_zero(options.granularity.count())),
        space(options.size.count() >> granule_bits, options.base_address >> granule_bits) {}

  Bytes InBytes(uint64_t granules) const { return Bytes(granules << granule_bits); }
  uint64_t InGranules(Bytes size) const {
    const uint64_t whole = size.count() >> granule_bits;
    return whole + (whole << granule_bits != size.count() ? 1 : 0);
  }
  // 0 where the process has used up all that there are.
  uint64_t NextSerial() {
    if (next_serial % SerialNumbers::kAtOnce == 0) {
      next_serial = serial_numbers.Take();
      if (next_serial == 0) return 0;
    }
    return next_serial++;
  }
  // The slot of a new range with this serial, or kNone.
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint32_t Allocate(Bytes size, Bytes alignment, uint64_t serial) {
    const uint64_t granules = InGranules(size);
    if (serial == 0 || !IsPowerOfTwo(alignment.count()) || granules > space.size() ||
        !space.Prepare()) {
      return RangeSpace::kNone;
    }
    uint32_t slot = RangeSpace::kNone;
    if (granules == 0) {
      slot = space.AllocateEmpty(serial);
    } else {
      slot = space.Allocate(granules, (alignment.count() - 1) >> granule_bits, serial);
      if (slot == RangeSpace::kNone) return slot;
    }
    ++allocations;
    allocated += granules;
    peak_allocated = std::max(peak_allocated, allocated);
    return slot;
  }
  Bytes OffsetOf(uint32_t slot) const { return InBytes(space.range(slot).offset); }
  // Why Allocate returned nothing.
  ABSL_ATTRIBUTE_NOINLINE absl::Status WhyNot(Bytes size, Bytes alignment, uint64_t serial) {
    if (!IsPowerOfTwo(alignment.count())) {
      return absl::InvalidArgumentError(
          absl::StrCat("alignment ", alignment.count(), " is not a power of two; 1 asks for none"));
    }
    if (serial == 0) {
      return absl::ResourceExhaustedError(
          "this process has named as many ranges as it ever can (2^63)");
    }
    if (!space.Prepare()) {
      return absl::ResourceExhaustedError("the host has no memory to keep one more range in mind");
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "no free range for ", size.count(), " bytes aligned to ", alignment.count(), ": ",
        InBytes(space.size() - allocated).count(), " of ", InBytes(space.size()).count(),
        " bytes are free, at most ", InBytes(space.LargestFree()).count(), " in a row"));
  }

  const int granule_bits;
  RangeSpace space;
  uint64_t next_serial = 0;  // A multiple of kAtOnce: its numbers are used up.
  uint64_t allocated = 0;    // Granules.
  uint64_t peak_allocated = 0;
  uint64_t allocations = 0;
};

RangeAllocator::RangeAllocator(const RangeAllocatorOptions& options) {
  if (!IsPowerOfTwo(options.granularity.count())) std::abort();
  if (options.base_address % options.granularity.count() != 0) std::abort();
  state_ = std::make_unique<State>(options);
}

RangeAllocator::~RangeAllocator() = default;
RangeAllocator::RangeAllocator(RangeAllocator&& other) noexcept = default;
RangeAllocator& RangeAllocator::operator=(RangeAllocator&& other) noexcept = default;

std::optional<AllocatedRange> RangeAllocator::TryAllocate(Bytes size, Bytes alignment) {
  const uint64_t serial = state_->NextSerial();
  const uint32_t slot = state_->Allocate(size, alignment, serial);
  if (ABSL_PREDICT_FALSE(slot == RangeSpace::kNone)) return std::nullopt;
  return AllocatedRange{state_->OffsetOf(slot), {serial, slot}};
}

absl::StatusOr<AllocatedRange> RangeAllocator::Allocate(Bytes size, Bytes alignment) {
  const uint64_t serial = state_->NextSerial();
  const uint32_t slot = state_->Allocate(size, alignment, serial);
  if (ABSL_PREDICT_FALSE(slot == RangeSpace::kNone)) return state_->WhyNot(size, alignment, serial);
  return AllocatedRange{state_->OffsetOf(slot), {serial, slot}};
}

absl::Status RangeAllocator::Free(RangeHandle handle) {
  State& state = *state_;
  if (!state.space.Holds(handle.slot, handle.serial)) return UnknownRange();
  --state.allocations;
  state.allocated -= state.space.range(handle.slot).size;
  state.space.Free(handle.slot);
  return absl::OkStatus();
}

absl::StatusOr<Bytes> RangeAllocator::SizeOf(RangeHandle handle) const {
  if (!state_->space.Holds(handle.slot, handle.serial)) return UnknownRange();
  return state_->InBytes(state_->space.range(handle.slot).size);
}

bool RangeAllocator::empty() const { return state_->allocations == 0; }

RangeAllocatorStats RangeAllocator::Stats() const {
  const State& state = *state_;
  return {.size = state.InBytes(state.space.size()),
          .allocated = state.InBytes(state.allocated),
          .peak_allocated = state.InBytes(state.peak_allocated),
          .free = state.InBytes(state.space.size() - state.allocated),
          .largest_free = state.InBytes(state.space.LargestFree()),
          .allocations = state.allocations,
          .free_ranges = state.space.free_ranges()};
}

}  // namespace heapbroker

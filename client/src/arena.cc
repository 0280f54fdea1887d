// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/arena.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::Status CheckAlignment(Bytes alignment) {
  if (IsPowerOfTwo(alignment.count())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("alignment ", alignment.count(), " is not a power of two; 1 asks for none"));
}

std::optional<Bytes> Arena::TryAllocate(Bytes size, Bytes alignment) {
  if (size == Bytes(0)) return EmptyPlace(alignment);
  const Bytes base(base_address_);
  const std::optional<Bytes> start = AlignUp(base + used_, alignment);
  const std::optional<Bytes> end = start ? CheckedAdd(*start, size) : std::nullopt;
  if (!end || *end > base + capacity_) return std::nullopt;
  used_ = *end - base;
  return *start - base;
}

absl::StatusOr<Bytes> Arena::Allocate(Bytes size, Bytes alignment) {
  HB_RETURN_IF_ERROR(CheckAlignment(alignment));
  if (const std::optional<Bytes> offset = TryAllocate(size, alignment)) return *offset;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the arena has no room for ", size.count(), " bytes aligned to ", alignment.count(), ": ",
      used_.count(), " of ", capacity_.count(), " bytes are used; reset it, or plan a larger one"));
}

Bytes Arena::EmptyPlace(Bytes alignment) const {
  const Bytes base(base_address_);
  const std::optional<Bytes> after = AlignUp(base + used_, alignment);
  if (after && *after <= base + capacity_) return *after - base;
  const Bytes before((base + used_).count() & ~(alignment.count() - 1));
  return before >= base ? before - base : Bytes(0);
}

}  // namespace heapbroker

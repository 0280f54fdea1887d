// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/arena.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::StatusOr<Bytes> Arena::Allocate(Bytes size, Bytes alignment) {
  if (!IsPowerOfTwo(alignment.count())) {
    return absl::InvalidArgumentError(
        absl::StrCat("alignment ", alignment.count(), " is not a power of two; 1 asks for none"));
  }
  if (size == Bytes(0)) {
    const std::optional<Bytes> start = AlignUp(used_, alignment);
    return start && *start <= capacity_ ? *start : Bytes(0);
  }
  const std::optional<Bytes> start = AlignUp(used_, alignment);
  const std::optional<Bytes> end = start ? CheckedAdd(*start, size) : std::nullopt;
  if (!end || *end > capacity_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the arena has no room for ", size.count(), " bytes aligned to ",
                     alignment.count(), ": ", used_.count(), " of ", capacity_.count(),
                     " bytes are used; reset it, or plan a larger one"));
  }
  used_ = *end;
  peak_ = std::max(peak_, used_);
  return *start;
}

}  // namespace heapbroker

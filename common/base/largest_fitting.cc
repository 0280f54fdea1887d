// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/base/largest_fitting.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<Bytes> LargestFitting(Bytes limit,
                                     absl::FunctionRef<absl::StatusOr<Bytes>(Bytes)> required) {
  const auto fits = [&](Bytes size) -> absl::StatusOr<bool> {
    HB_ASSIGN_OR_RETURN(const Bytes needed, required(size));
    return needed <= limit;
  };
  if (limit != Bytes()) {
    HB_ASSIGN_OR_RETURN(const bool all_fits, fits(limit));
    if (all_fits) return limit;
  }
  // `low` fits (nothing always does), `high` does not.
  uint64_t low = 0;
  uint64_t high = limit.count();
  while (low + 1 < high) {
    const uint64_t middle = low + (high - low) / 2;
    HB_ASSIGN_OR_RETURN(const bool middle_fits, fits(Bytes(middle)));
    (middle_fits ? low : high) = middle;
  }
  if (low == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no buffer fits into an allocation of ", limit.count(), " bytes"));
  }
  return Bytes(low);
}

}  // namespace heapbroker

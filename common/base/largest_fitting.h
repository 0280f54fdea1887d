// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How large a buffer an allocation can hold: drivers tell it the other way round.
// Daemon and client library find the buffer of a dedicated block each by itself, so
// both must search alike.
#ifndef COMMON_BASE_LARGEST_FITTING_H_
#define COMMON_BASE_LARGEST_FITTING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "heapbroker/units.h"

namespace heapbroker {

// The largest size, from 1 byte up to `limit`, whose `required` size is at most
// `limit`; `required` must not fall as its argument grows. One question where
// nothing is padded, else at most 65.
//   the first error of `required`
//   RESOURCE_EXHAUSTED  not even one byte fits
absl::StatusOr<Bytes> LargestFitting(Bytes limit,
                                     absl::FunctionRef<absl::StatusOr<Bytes>(Bytes)> required);

}  // namespace heapbroker
#endif  // COMMON_BASE_LARGEST_FITTING_H_

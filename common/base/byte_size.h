// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them.
#ifndef COMMON_BASE_BYTE_SIZE_H_
#define COMMON_BASE_BYTE_SIZE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "heapbroker/units.h"

namespace heapbroker {

// A decimal whole number and a unit: none or `b`; `kb mb gb tb` (powers of 1000);
// `kib mib gib tib` (powers of 1024); upper or lower case, a space in between is
// accepted. Nothing else is guessed at: the error, INVALID_ARGUMENT, quotes the
// text and the position.
absl::StatusOr<Bytes> ParseByteSize(absl::string_view text);

// The same for `part`, which must point into `text`: the error quotes all of
// `text` and the position in it.
absl::StatusOr<Bytes> ParseByteSizeIn(absl::string_view text, absl::string_view part);

}  // namespace heapbroker
#endif  // COMMON_BASE_BYTE_SIZE_H_

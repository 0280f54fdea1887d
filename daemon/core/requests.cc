// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/requests.h"

#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::Status CheckBlockCount(absl::string_view field, size_t count) {
  if (count >= 1 && count <= kMaxBlocksPerCall) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": has ", count, " entries; allowed are 1 to ", kMaxBlocksPerCall));
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/block_size.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace heapbroker {

Bytes RoundedBlockSize(Bytes size, Bytes largest) {
  Bytes step = MiB(2);
  if (size <= GiB(1)) {
    const Bytes at_least = std::max(size, kMinBlockSize);
    // An eighth of the power of two at or below the size.
    step = Bytes(std::bit_floor(at_least.count()) / 8);
  }
  const std::optional<Bytes> rounded = AlignUp(std::max(size, kMinBlockSize), step);
  return rounded && *rounded <= largest ? *rounded : size;
}

Bytes LargestAcceptableBlock(Bytes size, Bytes largest) {
  const Bytes slack = CheckedAdd(size, Bytes(size.count() / 8)).value_or(Bytes::Max());
  return std::max(RoundedBlockSize(size, largest), slack);
}

}  // namespace heapbroker

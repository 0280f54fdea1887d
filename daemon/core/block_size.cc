// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/block_size.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace heapbroker {
namespace {

Bytes Rounded(Bytes size, Bytes largest) {
  const Bytes at_least = std::max(size, kMinBlockSize);
  // An eighth of the power of two at or below the size.
  const Bytes step = size <= GiB(1) ? Bytes(std::bit_floor(at_least.count()) / 8) : MiB(2);
  const std::optional<Bytes> rounded = AlignUp(at_least, step);
  return rounded && *rounded <= largest ? *rounded : size;
}

// `size` × (1 + `per_mille` / 1000), rounded down; 2^64 - 1 where that is passed.
Bytes WithSlack(Bytes size, uint32_t per_mille) {
  // Thousands and rest apart: their product would pass 64 bits. What is left is
  // under 1000 × 2^32.
  const uint64_t thousands = size.count() / 1000;
  const uint64_t rest = size.count() % 1000 * per_mille / 1000;
  if (per_mille != 0 && thousands > UINT64_MAX / per_mille) return Bytes::Max();
  const std::optional<Bytes> slack = CheckedAdd(Bytes(thousands * per_mille), Bytes(rest));
  if (!slack) return Bytes::Max();
  return CheckedAdd(size, *slack).value_or(Bytes::Max());
}

}  // namespace

Bytes NewBlockSize(const MatchingPolicy& policy, Bytes size, Bytes largest) {
  return policy.matching == Matching::kExact ? size : Rounded(size, largest);
}

SizeRange AcceptableBlocks(const MatchingPolicy& policy, Bytes size, Bytes largest) {
  if (policy.matching == Matching::kExact) return {size, size};
  return {size, std::max(Rounded(size, largest), WithSlack(size, policy.slack_per_mille))};
}

}  // namespace heapbroker

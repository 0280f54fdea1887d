// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How large a new block is made, and which idle ones will do instead.
#ifndef DAEMON_CORE_BLOCK_SIZE_H_
#define DAEMON_CORE_BLOCK_SIZE_H_

#include <cstdint>

#include "heapbroker/units.h"

namespace heapbroker {

inline constexpr Bytes kMinBlockSize = KiB(64);

// Both ends included.
struct SizeRange {
  Bytes smallest;
  Bytes largest;

  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

enum class Matching {
  kBestFit,  // New blocks are rounded up, so that nearly equal sizes share them.
  kExact,    // The requested size and no other; nothing is rounded.
};

struct MatchingPolicy {
  Matching matching = Matching::kBestFit;
  // How much more than requested an idle block may have, in thousandths of the
  // request. Of no meaning for kExact.
  uint32_t slack_per_mille = 125;
};

// The size that a new block for a request of `size` is made for; a driver may pad it.
//   kBestFit  `size` rounded up to the next of eight steps per power of two, at
//             least kMinBlockSize; over 1 GiB to 2 MiB only, where an eighth would
//             be too much to waste. `size` itself where that would pass `largest`.
//             At most 12.5 % over `size` from kMinBlockSize on.
//   kExact    `size`
// Never wraps, whatever `size` is.
Bytes NewBlockSize(const MatchingPolicy& policy, Bytes size, Bytes largest);

// The idle blocks that may serve a request of `size`, by what they were made for.
//   kBestFit  up to what a new block would get or the request with its slack,
//             whichever is more; the smallest of them is the best
//   kExact    `size` alone
// `largest` as above. The end of the range stays at 2^64 - 1 where it would wrap.
SizeRange AcceptableBlocks(const MatchingPolicy& policy, Bytes size, Bytes largest);

}  // namespace heapbroker
#endif  // DAEMON_CORE_BLOCK_SIZE_H_

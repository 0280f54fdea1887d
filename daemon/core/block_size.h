// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How large a new block is made.
#ifndef DAEMON_CORE_BLOCK_SIZE_H_
#define DAEMON_CORE_BLOCK_SIZE_H_

#include <cstdint>

#include "heapbroker/units.h"

namespace heapbroker {

// Which idle block serves a request, and how large a new one is made.
enum class Matching { kBestFit, kExact };
struct MatchingPolicy {
  Matching matching = Matching::kBestFit;
  uint32_t slack_per_mille = 125;
};

inline constexpr Bytes kMinBlockSize = KiB(64);

// `size`, rounded up so that requests of nearly the same size share blocks: to
// the next of eight steps per power of two, at least kMinBlockSize; over 1 GiB to
// 2 MiB only, where an eighth would be too much to waste. `size` itself where
// rounding would pass `largest`. At most 12.5 % over `size` from kMinBlockSize on.
Bytes RoundedBlockSize(Bytes size, Bytes largest);

// The largest idle block that may serve a request of `size`: what a new block
// would get, or an eighth over the request, whichever is more.
Bytes LargestAcceptableBlock(Bytes size, Bytes largest);

}  // namespace heapbroker
#endif  // DAEMON_CORE_BLOCK_SIZE_H_

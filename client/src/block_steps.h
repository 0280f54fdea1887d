// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How large a block to lease next.
#ifndef CLIENT_SRC_BLOCK_STEPS_H_
#define CLIENT_SRC_BLOCK_STEPS_H_

#include <vector>

#include "heapbroker/units.h"

namespace heapbroker {

struct BlockStepLimits {
  Bytes smallest{};
  Bytes largest{};  // At least `smallest`.
  // Of the device; zero where it is not known. What is needed may be larger, and is then
  // for the daemon to refuse.
  Bytes max_allocation{};
};

// The sizes to ask for, one after the other, when `needed` bytes have no room in the
// blocks that are leased, of `leased` bytes together: each half of the one before it, all
// larger than `needed`, which is the last.
//
// Doubling what is leased keeps the number of blocks small (devices allow few) and what
// may stay unused below what is in use; halving finds a size that there is room for
// with few questions.
std::vector<Bytes> BlockSteps(const BlockStepLimits& limits, Bytes leased, Bytes needed);

}  // namespace heapbroker
#endif  // CLIENT_SRC_BLOCK_STEPS_H_

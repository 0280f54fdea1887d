// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/block_steps.h"

#include <algorithm>
#include <bit>

namespace heapbroker {

std::vector<Bytes> BlockSteps(const BlockStepLimits& limits, Bytes leased, Bytes needed) {
  Bytes step = std::clamp(Bytes(std::bit_floor(leased.count())), limits.smallest, limits.largest);
  if (limits.max_allocation != Bytes(0)) step = std::min(step, limits.max_allocation);
  std::vector<Bytes> steps;
  for (; step > needed; step = Bytes(step.count() / 2)) steps.push_back(step);
  steps.push_back(needed);
  return steps;
}

}  // namespace heapbroker

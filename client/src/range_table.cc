// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/range_table.h"

#include <algorithm>

namespace heapbroker {

bool RangeTable::Grow() {
  if (capacity_ == kMaxSlots) return false;
  const uint32_t capacity = std::max<uint32_t>(64, capacity_ * 2);
  void* const moved = std::realloc(ranges_.get(), size_t{capacity} * sizeof(Range));
  if (moved == nullptr) return false;
  ranges_.release();
  ranges_.reset(static_cast<Range*>(moved));
  capacity_ = capacity;
  if (end_ == 0) {
    end_ = kWall + 1;
    ranges_[kWall] = {.after = kWall, .high = Range::kAllocated};
  }
  return true;
}

}  // namespace heapbroker

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/range_space.h"

#include <algorithm>

namespace heapbroker {

bool RangeSpace::ListAll() {
  listed_ = true;
  if (size_ == 0) return true;
  const uint32_t all = table_.Take();
  table_[all] = {.size = size_};
  Insert(all);
  return true;
}

uint32_t RangeSpace::AllocateEmpty(uint64_t serial) {
  const uint32_t slot = table_.Take();
  table_[slot] = {};
  table_[slot].set_serial(serial);
  return slot;
}

uint64_t RangeSpace::LargestFree() const {
  const uint32_t highest = classes_.Highest();
  if (highest == SizeClasses::kNone) return listed_ ? 0 : size_;
  uint64_t largest = 0;
  for (uint32_t slot = classes_.first(highest); slot != kNone; slot = table_[slot].low) {
    largest = std::max(largest, table_[slot].size);
  }
  return largest;
}

RangeSpace::Place RangeSpace::FindOneByOne(uint64_t size, uint64_t alignment_mask) const {
  int looks = 0;
  for (uint32_t found = classes_.FindFrom(SizeClassOf(size)); found != SizeClasses::kNone;
       found = classes_.FindFrom(found + 1)) {
    for (uint32_t slot = classes_.first(found); slot != kNone; slot = table_[slot].low) {
      const Place place = PlaceIn(slot, size, alignment_mask);
      if (place.slot != kNone || ++looks == kMaxLooks) return place;
    }
  }
  return {};
}

}  // namespace heapbroker

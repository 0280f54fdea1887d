// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which granules of a run of memory are free, and which to hand out next.
#ifndef CLIENT_SRC_RANGE_SPACE_H_
#define CLIENT_SRC_RANGE_SPACE_H_

#include <cstdint>

#include "client/src/range_table.h"
#include "client/src/size_classes.h"

namespace heapbroker {

// The two-level segregated fit of RangeAllocator, for callers that check: sizes are
// granules, slots must be those of allocated ranges. Not thread-safe.
class RangeSpace {
 public:
  static constexpr uint32_t kNone = RangeTable::kWall;

  // `base` is where alignment counts from: what offset 0 is the address of.
  RangeSpace(uint64_t size, uint64_t base) : size_(size), base_(base), classes_(size) {}

  // Must have been true since the last Allocate. False: the host has no memory.
  bool Prepare() { return table_.HasRoomFor(kSlotsOfOneRequest) && (listed_ || ListAll()); }

  // A slot with a range of `size`, whose address is a multiple of `alignment_mask` + 1, or
  // kNone.
  // `size` must not be 0, nor more than size(); the highest bit of `serial` must be set.
  uint32_t Allocate(uint64_t size, uint64_t alignment_mask, uint64_t serial);

  // A slot with a range of no size, which lies nowhere.
  uint32_t AllocateEmpty(uint64_t serial);

  void Free(uint32_t slot);

  bool Holds(uint32_t slot, uint64_t serial) const {
    return table_.Contains(slot) && table_[slot].has_serial(serial) && table_[slot].allocated();
  }
  const Range& range(uint32_t slot) const { return table_[slot]; }

  uint64_t size() const { return size_; }
  uint64_t free_ranges() const { return free_ranges_; }
  // Visits the free ranges of the highest class.
  uint64_t LargestFree() const;

 private:
  // Padding, the range itself and what is left behind it take at most one new slot
  // each, and the first request one more.
  static constexpr uint32_t kSlotsOfOneRequest = 4;
  // How many free ranges a request looks at that may be too small for it.
  static constexpr int kMaxLooks = 256;

  // Where a request fits: `padding` granules into a free range.
  struct Place {
    uint32_t slot = kNone;
    uint64_t padding = 0;
  };

  bool ListAll();
  Place Find(uint64_t size, uint64_t alignment_mask) const;
  Place FindOneByOne(uint64_t size, uint64_t alignment_mask) const;
  Place PlaceIn(uint32_t slot, uint64_t size, uint64_t alignment_mask) const;
  // Makes a range at the front of this one, which gets shorter; in no list.
  uint32_t CutFront(uint32_t slot, uint64_t size);
  void Insert(uint32_t slot);
  void Remove(uint32_t slot, uint32_t size_class);
  void Remove(uint32_t slot) { Remove(slot, SizeClassOf(table_[slot].size)); }
  // The free range is listed as one of size `before`.
  void ListAgain(uint32_t slot, uint64_t before);

  uint64_t size_;
  uint64_t base_;
  bool listed_ = false;  // The memory is in the table.
  RangeTable table_;
  SizeClasses classes_;
  uint64_t free_ranges_ = 0;
};

inline uint32_t RangeSpace::Allocate(uint64_t size, uint64_t alignment_mask, uint64_t serial) {
  const Place place = Find(size, alignment_mask);
  if (place.slot == kNone) return kNone;
  uint32_t slot = place.slot;
  const uint64_t found = table_[slot].size;
  if (place.padding != 0) {
    const uint32_t padding = CutFront(slot, place.padding);
    Insert(padding);
  }
  if (table_[slot].size == size) {
    Remove(slot, SizeClassOf(found));
  } else {
    const uint32_t rest = slot;
    slot = CutFront(rest, size);
    ListAgain(rest, found);
  }
  table_[slot].set_serial(serial);
  return slot;
}

inline void RangeSpace::Free(uint32_t slot) {
  Range& range = table_[slot];
  const uint32_t before = range.before;
  const uint32_t after = range.after;
  if (range.size == 0) return table_.Return(slot);
  if (!table_[before].allocated()) {
    const uint64_t listed = table_[before].size;
    uint64_t joined = listed + range.size;
    uint32_t next = after;
    if (!table_[after].allocated()) {
      Remove(after);
      joined += table_[after].size;
      next = table_[after].after;
      table_.Return(after);
    }
    table_.Return(slot);
    table_[before].size = joined;
    table_[before].after = next;
    table_[next].before = before;
    return ListAgain(before, listed);
  }
  if (!table_[after].allocated()) {
    const uint64_t listed = table_[after].size;
    table_[after].offset = range.offset;
    table_[after].size = listed + range.size;
    table_[after].before = before;
    table_[before].after = after;
    table_.Return(slot);
    return ListAgain(after, listed);
  }
  Insert(slot);
}

inline RangeSpace::Place RangeSpace::Find(uint64_t size, uint64_t alignment_mask) const {
  // Its own class first, though only some of its ranges are large enough: programs ask
  // for the same sizes again and again, and larger ranges stay whole.
  const uint32_t own = SizeClassOf(size);
  uint32_t found = classes_.FindFrom(own);
  if (found == SizeClasses::kNone) return {};
  Place place = PlaceIn(classes_.first(found), size, alignment_mask);
  if (place.slot != kNone) return place;
  if (found == own) {
    found = classes_.FindFrom(own + 1);
    if (found == SizeClasses::kNone) return FindOneByOne(size, alignment_mask);
    place = PlaceIn(classes_.first(found), size, alignment_mask);
    if (place.slot != kNone) return place;
  }
  // That one was large enough, but for padding. Every range from here on is.
  if (size <= ~uint64_t{0} - alignment_mask) {
    found = classes_.FindFrom(SizeClassAbove(size + alignment_mask));
    if (found != SizeClasses::kNone) return PlaceIn(classes_.first(found), size, alignment_mask);
  }
  return FindOneByOne(size, alignment_mask);
}

inline RangeSpace::Place RangeSpace::PlaceIn(uint32_t slot, uint64_t size,
                                             uint64_t alignment_mask) const {
  const Range& range = table_[slot];
  const uint64_t padding = (0 - base_ - range.offset) & alignment_mask;
  if (range.size < size || range.size - size < padding) return {};
  return {.slot = slot, .padding = padding};
}

inline uint32_t RangeSpace::CutFront(uint32_t slot, uint64_t size) {
  const uint32_t front = table_.Take();
  Range& rest = table_[slot];
  table_[front] = {.offset = rest.offset, .size = size, .before = rest.before, .after = slot};
  table_[rest.before].after = front;
  rest.before = front;
  rest.offset += size;
  rest.size -= size;
  return front;
}

inline void RangeSpace::Insert(uint32_t slot) {
  const uint32_t size_class = SizeClassOf(table_[slot].size);
  const uint32_t next = classes_.first(size_class);
  table_[slot].next_free() = next;
  table_[slot].previous_free() = kNone;
  if (next != kNone) {
    table_[next].previous_free() = slot;
    classes_.ReplaceFirst(size_class, slot);
  } else {
    classes_.Open(size_class, slot);
  }
  ++free_ranges_;
}

inline void RangeSpace::Remove(uint32_t slot, uint32_t size_class) {
  const uint32_t next = table_[slot].next_free();
  const uint32_t previous = table_[slot].previous_free();
  if (next != kNone) table_[next].previous_free() = previous;
  if (previous != kNone) {
    table_[previous].next_free() = next;
  } else if (next != kNone) {
    classes_.ReplaceFirst(size_class, next);
  } else {
    classes_.Empty(size_class);
  }
  --free_ranges_;
}

inline void RangeSpace::ListAgain(uint32_t slot, uint64_t before) {
  const uint32_t old_class = SizeClassOf(before);
  if (old_class == SizeClassOf(table_[slot].size)) return;
  Remove(slot, old_class);
  Insert(slot);
}

}  // namespace heapbroker
#endif  // CLIENT_SRC_RANGE_SPACE_H_

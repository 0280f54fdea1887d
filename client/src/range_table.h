// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Ranges, free and allocated, in the order in which they lie in memory.
#ifndef CLIENT_SRC_RANGE_TABLE_H_
#define CLIENT_SRC_RANGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace heapbroker {

// Half a cache line: what random frees cost is how many lines they touch.
struct Range {
  uint64_t offset;  // In granules, as `size`.
  uint64_t size;
  uint32_t before;  // Slots of the neighbours in memory; RangeTable::kWall at the ends.
  uint32_t after;
  // Free: the neighbours in the list of the size class, 0 at its ends. Allocated: the
  // halves of the serial, whose highest bit is set. Not in use: zeros.
  uint32_t low;
  uint32_t high;

  static constexpr uint32_t kAllocated = uint32_t{1} << 31;

  bool allocated() const { return (high & kAllocated) != 0; }
  void set_serial(uint64_t serial) {
    low = static_cast<uint32_t>(serial);
    high = static_cast<uint32_t>(serial >> 32);
  }
  bool has_serial(uint64_t serial) const {
    return low == static_cast<uint32_t>(serial) && high == static_cast<uint32_t>(serial >> 32);
  }
  uint32_t& next_free() { return low; }
  uint32_t& previous_free() { return high; }
};
static_assert(sizeof(Range) == 32);

// Slots with a Range in each. They have numbers instead of addresses: those are half
// as long, and realloc moves large tables without copying them.
class RangeTable {
 public:
  // Never handed out and never free: what lies before the first range and after the
  // last one.
  static constexpr uint32_t kWall = 0;
  // Numbers have to leave Range::kAllocated alone.
  static constexpr uint32_t kMaxSlots = Range::kAllocated;

  // False where the host has no memory, or there are kMaxSlots.
  bool HasRoomFor(uint32_t slots) { return end_ + slots <= capacity_ || Grow(); }

  // There must be room.
  uint32_t Take() {
    if (spare_ == kWall) return end_++;
    const uint32_t slot = spare_;
    spare_ = ranges_[slot].after;
    return slot;
  }
  void Return(uint32_t slot) {
    Range& range = ranges_[slot];
    range.low = range.high = 0;
    range.after = spare_;
    spare_ = slot;
  }

  Range& operator[](uint32_t slot) { return ranges_[slot]; }
  const Range& operator[](uint32_t slot) const { return ranges_[slot]; }

  // That a handle may name: a made-up one must not reach the wall, which has a serial
  // as everything that is allocated.
  bool Contains(uint32_t slot) const { return slot != kWall && slot < end_; }

 private:
  struct Deleter {
    void operator()(Range* ranges) const { std::free(ranges); }
  };

  bool Grow();

  std::unique_ptr<Range[], Deleter> ranges_;
  uint32_t capacity_ = 0;
  uint32_t end_ = 0;
  uint32_t spare_ = kWall;  // Linked by `after`.
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_RANGE_TABLE_H_

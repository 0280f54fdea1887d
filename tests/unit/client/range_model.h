// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What RangeAllocator may do, told with plain maps.
#ifndef TESTS_UNIT_CLIENT_RANGE_MODEL_H_
#define TESTS_UNIT_CLIENT_RANGE_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "heapbroker/range_allocator.h"

namespace heapbroker {

// Knows every byte: offsets of allocated ranges and of the gaps between them.
class RangeModel {
 public:
  explicit RangeModel(const RangeAllocatorOptions& options)
      : granularity_(options.granularity.count()),
        base_(options.base_address),
        size_(options.size.count() / granularity_ * granularity_) {
    if (size_ != 0) AddGap(0, size_);
  }

  // The allocator said that the range is there now.
  void Allocated(uint64_t offset, uint64_t size, uint64_t alignment) {
    if (size == 0) return;
    ASSERT_EQ((base_ + offset) % alignment, 0u);
    ASSERT_EQ(offset % granularity_, 0u);
    size = RoundedUp(size);
    const auto after = gaps_.upper_bound(offset);
    ASSERT_NE(after, gaps_.begin()) << "no free range begins at or before " << offset;
    const auto [gap, gap_size] = *std::prev(after);
    ASSERT_LE(offset - gap, gap_size) << "overlaps";
    ASSERT_LE(size, gap_size - (offset - gap)) << "overlaps, or passes the end";
    RemoveGap(gap);
    if (offset > gap) AddGap(gap, offset - gap);
    if (gap + gap_size > offset + size) AddGap(offset + size, gap + gap_size - offset - size);
    ranges_[offset] = size;
    allocated_ += size;
    peak_ = std::max(peak_, allocated_);
  }

  void Freed(uint64_t offset, uint64_t size) {
    if (size == 0) return;
    ASSERT_EQ(ranges_.at(offset), RoundedUp(size));
    uint64_t begin = offset;
    uint64_t end = offset + ranges_.at(offset);
    allocated_ -= end - begin;
    ranges_.erase(offset);
    const auto after = gaps_.find(end);
    if (after != gaps_.end()) {
      end += after->second;
      RemoveGap(after->first);
    }
    const auto before = gaps_.lower_bound(begin);
    if (before != gaps_.begin() && std::prev(before)->first + std::prev(before)->second == begin) {
      begin = std::prev(before)->first;
      RemoveGap(begin);
    }
    AddGap(begin, end - begin);
  }

  // Whether any gap has room for it.
  bool Fits(uint64_t size, uint64_t alignment) const {
    if (size > size_) return false;
    for (const auto& [offset, gap_size] : gaps_) {
      const uint64_t padding = (0 - base_ - offset) & (alignment - 1);
      if (gap_size >= RoundedUp(size) && gap_size - RoundedUp(size) >= padding) return true;
    }
    return size == 0;
  }

  // Every free range is one gap, so all that touch are joined.
  void Check(const RangeAllocatorStats& stats) const {
    ASSERT_EQ(stats.size, Bytes(size_));
    ASSERT_EQ(stats.allocated, Bytes(allocated_));
    ASSERT_EQ(stats.peak_allocated, Bytes(peak_));
    ASSERT_EQ(stats.free, Bytes(size_ - allocated_));
    ASSERT_EQ(stats.free_ranges, gaps_.size());
    ASSERT_EQ(stats.largest_free, Bytes(largest_gap()));
  }

  uint64_t size() const { return size_; }
  uint64_t allocated() const { return allocated_; }
  size_t gaps() const { return gaps_.size(); }
  uint64_t largest_gap() const { return gap_sizes_.empty() ? 0 : *gap_sizes_.rbegin(); }

 private:
  uint64_t RoundedUp(uint64_t size) const {
    return size / granularity_ * granularity_ + (size % granularity_ == 0 ? 0 : granularity_);
  }
  void AddGap(uint64_t offset, uint64_t size) {
    gaps_[offset] = size;
    gap_sizes_.insert(size);
  }
  void RemoveGap(uint64_t offset) {
    gap_sizes_.erase(gap_sizes_.find(gaps_.at(offset)));
    gaps_.erase(offset);
  }

  const uint64_t granularity_;
  const uint64_t base_;
  const uint64_t size_;
  std::map<uint64_t, uint64_t> ranges_;
  std::map<uint64_t, uint64_t> gaps_;
  std::multiset<uint64_t> gap_sizes_;
  uint64_t allocated_ = 0;
  uint64_t peak_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_RANGE_MODEL_H_

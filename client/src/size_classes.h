// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which free ranges are about as long as each other.
#ifndef CLIENT_SRC_SIZE_CLASSES_H_
#define CLIENT_SRC_SIZE_CLASSES_H_

#include <bit>
#include <cstdint>
#include <vector>

namespace heapbroker {

// The class of a size: every size up to 127 has its own, and from there on each power
// of two is divided into 64. Larger sizes never have lower classes.
constexpr uint32_t SizeClassOf(uint64_t size) {
  const int shift = std::bit_width(size | 127) - 7;
  return static_cast<uint32_t>(shift) * 64 + static_cast<uint32_t>(size >> shift);
}

// The lowest class of which all sizes are `size` or more. `size` must not be 0.
constexpr uint32_t SizeClassAbove(uint64_t size) { return SizeClassOf(size - 1) + 1; }

// Which classes have members, and one number for each of these.
class SizeClasses {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // For sizes up to `largest`.
  explicit SizeClasses(uint64_t largest) : first_(SizeClassOf(largest) + 1) {}

  // 0 for an empty class.
  uint32_t first(uint32_t size_class) const { return first_[size_class]; }
  // Between two members of a class that is not empty.
  void ReplaceFirst(uint32_t size_class, uint32_t member) { first_[size_class] = member; }
  void Open(uint32_t size_class, uint32_t member) {
    first_[size_class] = member;
    const uint32_t word = size_class / 64;
    bits_[word] |= uint64_t{1} << size_class % 64;
    words_ |= uint64_t{1} << word;
  }
  void Empty(uint32_t size_class) {
    first_[size_class] = 0;
    const uint32_t word = size_class / 64;
    bits_[word] &= ~(uint64_t{1} << size_class % 64);
    if (bits_[word] == 0) words_ &= ~(uint64_t{1} << word);
  }

  // The lowest class from `size_class` on that is not empty, or kNone.
  uint32_t FindFrom(uint32_t size_class) const {
    uint32_t word = size_class / 64;
    const uint64_t here = bits_[word] & (~uint64_t{0} << size_class % 64);
    if (here != 0) return word * 64 + static_cast<uint32_t>(std::countr_zero(here));
    const uint64_t above = words_ & (~uint64_t{0} << (word + 1));
    if (above == 0) return kNone;
    word = static_cast<uint32_t>(std::countr_zero(above));
    return word * 64 + static_cast<uint32_t>(std::countr_zero(bits_[word]));
  }

  // The highest one that is not empty, or kNone.
  uint32_t Highest() const {
    if (words_ == 0) return kNone;
    const uint32_t word = 63 - static_cast<uint32_t>(std::countl_zero(words_));
    return word * 64 + 63 - static_cast<uint32_t>(std::countl_zero(bits_[word]));
  }

 private:
  // One more than sizes of 64 bits have, for SizeClassAbove.
  static constexpr uint32_t kWords = (SizeClassOf(~uint64_t{0}) + 1) / 64 + 1;
  static_assert(kWords <= 64);

  std::vector<uint32_t> first_;
  uint64_t bits_[kWords] = {};
  uint64_t words_ = 0;  // Those of bits_ that are not 0.
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_SIZE_CLASSES_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Byte counts as a type, so that they are not mixed up with counts of other
// things, and so that no sum wraps unseen. Installed for clients.
#ifndef HEAPBROKER_UNITS_H_
#define HEAPBROKER_UNITS_H_

#include <cassert>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>

#include "heapbroker/export.h"

namespace heapbroker {

// A number of bytes, or an offset in bytes. Plain `+` and `-` are for values
// that are known to fit (a debug build checks); what a peer sent goes through
// CheckedAdd and AlignUp.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(uint64_t count) : count_(count) {}
  static constexpr Bytes Max() { return Bytes(std::numeric_limits<uint64_t>::max()); }

  constexpr uint64_t count() const { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    assert(a <= Max() - b);
    return Bytes(a.count_ + b.count_);
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    assert(a >= b);
    return Bytes(a.count_ - b.count_);
  }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  uint64_t count_ = 0;
};

constexpr Bytes KiB(uint64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(uint64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(uint64_t n) { return Bytes(n << 30); }

// Empty where the sum passes 2^64 - 1.
constexpr std::optional<Bytes> CheckedAdd(Bytes a, Bytes b) {
  if (a > Bytes::Max() - b) return std::nullopt;
  return a + b;
}

constexpr bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

// `value` rounded up to a multiple of `alignment`, which must be a power of two.
// Empty where that passes 2^64 - 1.
constexpr std::optional<Bytes> AlignUp(Bytes value, Bytes alignment) {
  const std::optional<Bytes> sum = CheckedAdd(value, alignment - Bytes(1));
  if (!sum) return std::nullopt;
  return Bytes(sum->count() & ~(alignment.count() - 1));
}

// For people: "512 B", "64.0 KiB", "898.6 MiB".
HEAPBROKER_EXPORT std::string FormatBytes(Bytes bytes);

inline std::ostream& operator<<(std::ostream& out, Bytes bytes) {
  return out << bytes.count() << " B";
}

template <typename H>
H AbslHashValue(H h, Bytes bytes) {
  return H::combine(std::move(h), bytes.count());
}

}  // namespace heapbroker
#endif  // HEAPBROKER_UNITS_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Numbers that are given out once.
#ifndef CLIENT_SRC_SERIAL_NUMBERS_H_
#define CLIENT_SRC_SERIAL_NUMBERS_H_

#include <atomic>
#include <cstdint>

namespace heapbroker {

// Gives several of them at once, so that whoever needs many seldom asks. Thread-safe.
class SerialNumbers {
 public:
  static constexpr uint64_t kAtOnce = uint64_t{1} << 12;

  // From `first` on, which is a multiple of kAtOnce and not 0.
  explicit constexpr SerialNumbers(uint64_t first) : next_(first) {}

  // The first of kAtOnce numbers that nobody else gets, itself a multiple of that; 0
  // where there are no more, from then on for ever.
  uint64_t Take() {
    uint64_t next = next_.load(std::memory_order_relaxed);
    while (next != 0 &&
           !next_.compare_exchange_weak(next, next + kAtOnce, std::memory_order_relaxed)) {
    }
    return next;
  }

 private:
  std::atomic<uint64_t> next_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_SERIAL_NUMBERS_H_

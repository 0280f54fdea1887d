// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which bytes of a block an arena hands out next.
#ifndef CLIENT_SRC_ARENA_H_
#define CLIENT_SRC_ARENA_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heapbroker/units.h"

namespace heapbroker {

// INVALID_ARGUMENT unless it is a power of two.
absl::Status CheckAlignment(Bytes alignment);

// A cursor that moves from 0 to `capacity` and goes back only by Reset.
// Arithmetic only, in constant time; not thread-safe.
class Arena {
 public:
  // `base_address` is where offset 0 lies for those who care how addresses are
  // aligned; base_address + capacity must not pass 2^64 - 1.
  explicit Arena(Bytes capacity, uint64_t base_address = 0)
      : capacity_(capacity), base_address_(base_address) {}

  // The offset of `size` bytes whose address is a multiple of `alignment`, a power
  // of two; empty where they do not fit, which changes nothing. An empty request
  // always fits and takes nothing, not even padding; its address is aligned, too, if
  // the arena has one that is.
  std::optional<Bytes> TryAllocate(Bytes size, Bytes alignment);

  // The same, and says why not.
  //   INVALID_ARGUMENT    alignment is not a power of two
  //   RESOURCE_EXHAUSTED  does not fit; the message says what is left
  absl::StatusOr<Bytes> Allocate(Bytes size, Bytes alignment);

  void Reset() { used_ = Bytes(0); }

  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }  // Padding included.

 private:
  Bytes EmptyPlace(Bytes alignment) const;

  Bytes capacity_;
  uint64_t base_address_;
  Bytes used_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_ARENA_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which bytes of a block an arena hands out next.
#ifndef CLIENT_SRC_ARENA_H_
#define CLIENT_SRC_ARENA_H_

#include "absl/status/statusor.h"
#include "heapbroker/units.h"

namespace heapbroker {

// A cursor that moves from 0 to `capacity` and goes back only by Reset.
// Arithmetic only, in constant time; not thread-safe.
class Arena {
 public:
  explicit Arena(Bytes capacity) : capacity_(capacity) {}

  // The offset of `size` bytes, a multiple of `alignment`. An empty request takes
  // nothing, not even padding. A refused request changes nothing.
  //   INVALID_ARGUMENT    alignment is not a power of two
  //   RESOURCE_EXHAUSTED  does not fit; the message says what is left
  absl::StatusOr<Bytes> Allocate(Bytes size, Bytes alignment);

  void Reset() { used_ = Bytes(0); }

  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }  // Padding included.
  Bytes peak() const { return peak_; }  // Largest used() ever.

 private:
  Bytes capacity_;
  Bytes used_;
  Bytes peak_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_ARENA_H_

// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which heap each of several blocks can lie on, so that all of them fit.
#ifndef DAEMON_CORE_HEAP_ASSIGNMENT_H_
#define DAEMON_CORE_HEAP_ASSIGNMENT_H_

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "heapbroker/units.h"

namespace heapbroker {

// A block that needs a place.
struct Piece {
  Bytes bytes;
  absl::InlinedVector<uint32_t, 4> heaps;  // Where it could lie, the best first; never empty.
};

// By piece.
using HeapAssignment = std::vector<uint32_t>;

// There is no assignment.
struct NoAssignment {
  // What could lie there is more than it has room for, and what the other heaps can take
  // is taken off. Of several such heaps the one with most room.
  uint32_t heap = 0;
  // False where the search was given up: there may be one.
  bool certain = true;
};

// How far the search goes, which is bounded since everybody waits for it: about a tenth
// of a millisecond. It is enough for any 11 blocks that could lie on two heaps each, and
// any 7 that could on three; what has one heap only does not count, and of blocks of one
// size hundreds are no trouble.
inline constexpr size_t kMostAssignmentSteps = size_t{1} << 13;

// `room` is by heap, for all heaps that pieces name.
std::variant<HeapAssignment, NoAssignment> AssignHeaps(absl::Span<const Piece> pieces,
                                                       std::vector<Bytes> room);

}  // namespace heapbroker
#endif  // DAEMON_CORE_HEAP_ASSIGNMENT_H_
